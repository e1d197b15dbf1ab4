package smtp

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// verdict is what a fault of the server has to be told as.
func verdict(step, do string) (class pawl.Class, notApplied, succeeds bool) {
	reply := do[0] >= '1' && do[0] <= '5'
	switch {
	case step == stepQuit:
		return "", false, true // the message was accepted before
	case step == stepContent: // of a small message, all was under way with the dot
		return pawl.ClassIndeterminate, false, false
	case step == stepDot && (!reply || do[0] <= '3'):
		return pawl.ClassIndeterminate, false, false
	case reply && do[0] == '5' && (step == stepAuth || strings.HasPrefix(do, "530")):
		return pawl.ClassAuth, true, false
	case reply && do[0] == '5':
		return pawl.ClassLogic, true, false
	}
	return pawl.ClassTransient, true, false
}

// Whatever the server does, what is said about the message is true (context
// 3.5): never "it did not happen" when it was accepted.
func TestOutcomesAreTrueWhereverTheServerFails(t *testing.T) {
	modes := map[string]struct {
		definition string
		server     func(*smtpServer)
		steps      []string
	}{
		"starttls": {login, nil, []string{stepGreeting, stepHello, stepTLS, stepSecure, stepAgain, stepAuth, stepSender, stepTarget, stepData, stepContent, stepDot, stepQuit}},
		"implicit": {"tls: implicit\n" + login, func(s *smtpServer) { s.implicit, s.offers = true, []string{"AUTH LOGIN"} },
			[]string{stepSecure, stepGreeting, stepHello, stepAuth, stepSender, stepTarget, stepData, stepContent, stepDot, stepQuit}},
		"none": {"tls: none", nil, []string{stepGreeting, stepHello, stepSender, stepTarget, stepData, stepContent, stepDot, stepQuit}},
	}
	for name, mode := range modes {
		for _, step := range mode.steps {
			for _, do := range []string{cutBefore, cutAfter, hang, babble, half, "421 closing", "450 busy", "530 log in", "550 no", "354 strange"} {
				deed := do == cutBefore || do == cutAfter || do == hang
				if (step == stepSecure || step == stepContent) && !deed || step == stepData && do == "354 strange" {
					continue // the server says nothing there; 354 is what it should say
				}
				t.Run(name+"/"+step+"/"+do, func(t *testing.T) {
					t.Parallel()
					server := newServer(t, func(s *smtpServer) {
						if mode.server != nil {
							mode.server(s)
						}
						s.fault = fault{step, do}
					})
					s := connectTo(t, server, mode.definition)
					if do == hang {
						s.server.Timeout = time.Second
					}
					_, err := s.Call(t.Context(), callOf(t, "key", hello))
					judge(t, server, step, do, err)
				})
			}
		}
	}
}

func judge(t *testing.T, server *smtpServer, step, do string, err error) {
	t.Helper()
	accepted := len(server.messages())
	e, failed := errors.AsType[*connector.Error](err)
	class, notApplied, succeeds := verdict(step, do)
	switch {
	case succeeds != !failed:
		t.Fatalf("the call fails with %v", err)
	case !failed && accepted != 1:
		t.Errorf("reported as sent, and %d were accepted", accepted)
	case failed && e.NotApplied && accepted != 0:
		t.Errorf("reported as not sent, and it was accepted: %v", e)
	case failed && (e.Class != class || e.NotApplied != notApplied):
		t.Errorf("told as %s, %v (%v); want %s, %v", e.Class, e.NotApplied, e, class, notApplied)
	case failed && !e.NotApplied && !strings.Contains(e.Msg, "<key@example.com>"):
		t.Errorf("nobody knows which message to look for: %v", e)
	}
	if failed && strings.Contains(e.Error()+e.Hint, "geheim") {
		t.Errorf("the password is told: %v", e)
	}
}

func TestAMessageWithoutItsDotWasNotSent(t *testing.T) {
	for _, mode := range []string{"tls: none", ""} {
		server := newServer(t, func(s *smtpServer) { s.fault = fault{stepContent, cutBefore} })
		large := object{"to": "ann@example.com", "text": strings.Repeat("more than any buffer holds\n", 9<<20/30)}
		e := fail(t, t.Context(), connectTo(t, server, mode), callOf(t, "key", large))
		checkFault(t, e, pawl.ClassTransient, "broken")
		same(t, 0, len(server.messages()))
	}
}

// A call that is told to stop stops before the dot, and waits after it.
func TestStoppingACallIsToldTruthfully(t *testing.T) {
	for _, step := range []string{stepGreeting, stepHello, stepSender, stepData} {
		server := newServer(t, func(s *smtpServer) { s.fault = fault{step, hang} })
		s := connectTo(t, server, "tls: none")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		e := fail(t, ctx, s, callOf(t, "key", hello))
		cancel()
		checkFault(t, e, pawl.ClassTransient, "timeout")
		same(t, 0, len(server.messages()))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	server := newServer(t, nil)
	checkFault(t, fail(t, cancelled, connectTo(t, server), callOf(t, "key", hello)), pawl.ClassTransient, "interrupted")
}

func TestTheAnswerToTheDotIsWaitedForWhateverEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := newServer(t, func(s *smtpServer) { s.atDot = cancel })
	if _, err := connectTo(t, server, "tls: none").Call(ctx, callOf(t, "key", hello)); err != nil {
		t.Error(err)
	}
	same(t, 1, len(server.messages()))
}

func TestServersThatCannotBeReached(t *testing.T) {
	server := newServer(t, nil)
	closed := portOf(t, server)
	_ = server.listener.Close()
	for _, test := range []struct {
		host  string
		allow []string
		class pawl.Class
		code  string
	}{
		{"127.0.0.1", []string{"127.0.0.0/8"}, pawl.ClassTransient, "unreachable"},
		{"127.0.0.1", nil, pawl.ClassPermission, "blocked"},
		{"nowhere.invalid", nil, pawl.ClassTransient, "dns"},
	} {
		s, _, _ := define(t, environment(t, test.allow...), "host: "+test.host+"\nfrom: a@example.com")
		s.server.Port = closed
		checkFault(t, fail(t, t.Context(), s, callOf(t, "key", hello)), test.class, test.code)
		if saw, err := s.Test(t.Context()); err == nil {
			t.Errorf("Test saw %q", saw)
		}
	}
}

func TestTLSIsRequired(t *testing.T) {
	plain := newServer(t, func(s *smtpServer) { s.fault = fault{stepHello, "250-server\r\n250 AUTH PLAIN"} }) // no STARTTLS
	checkFault(t, fail(t, t.Context(), connectTo(t, plain, login), callOf(t, "key", hello)), pawl.ClassPrecondition, "no_tls")
	if strings.Contains(plain.heard(), "AUTH") {
		t.Errorf("the password went over the wire in clear:\n%s", plain.heard())
	}

	for _, mode := range []string{"", "tls: implicit"} {
		stranger := newServer(t, func(s *smtpServer) { s.implicit = mode != "" })
		s := connectTo(t, stranger, mode+"\n"+login)
		s.server.Roots = nil // nobody vouches for the certificate
		checkFault(t, fail(t, t.Context(), s, callOf(t, "key", hello)), pawl.ClassTransient, "tls")
	}

	injected := newServer(t, func(s *smtpServer) { s.fault = fault{stepTLS, "220 go\r\n250 injected"} })
	checkFault(t, fail(t, t.Context(), connectTo(t, injected, login), callOf(t, "key", hello)), pawl.ClassTransient, "strange")
}

func TestWithoutTLSOnlyLocalServersAreUsed(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.0.1": true, "fd00::1": true, "192.0.2.1": false, "2001:db8::1": false} {
		if got := isLocal(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is local: %v", address, got)
		}
	}
}

func TestLoginsAreTried(t *testing.T) {
	server := newServer(t, nil)
	wrong := connectTo(t, server, "username: robot\npassword: geheim-456")
	e := fail(t, t.Context(), wrong, callOf(t, "key", hello))
	checkFault(t, e, pawl.ClassAuth, "auth")
	if !strings.Contains(e.Msg, `"robot"`) || strings.Contains(e.Error(), "geheim-456") {
		t.Errorf("told as %v", e)
	}
	if saw, err := wrong.Test(t.Context()); err == nil {
		t.Errorf("Test saw %q", saw)
	}
	exotic := newServer(t, func(s *smtpServer) { s.offers = []string{"AUTH GSSAPI"} })
	checkFault(t, fail(t, t.Context(), connectTo(t, exotic, login), callOf(t, "key", hello)), pawl.ClassPrecondition, "no_login")
	saw, err := connectTo(t, server, login).Test(t.Context())
	if err != nil || saw != `the server answered over TLS and let "robot" in` {
		t.Errorf("Test saw %q, %v", saw, err)
	}
	if saw, err := connectTo(t, server, "tls: none").Test(t.Context()); err != nil || saw != "the server answered in clear" {
		t.Errorf("Test saw %q, %v", saw, err)
	}
	same(t, 0, len(server.messages()))
}
