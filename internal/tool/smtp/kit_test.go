package smtp

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

// environment is that of a process that may call the given ranges.
func environment(t *testing.T, allow ...string) connector.Env {
	t.Helper()
	var prefixes []netip.Prefix
	for _, text := range allow {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: prefixes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return connector.Env{HTTP: client, Getenv: func(name string) string {
		return map[string]string{"SMTP_PASSWORD": "geheim-123"}[name]
	}}
}

// define makes a connection out of a definition, whose faults it returns.
func define(t *testing.T, env connector.Env, text string) (s *Server, ok bool, faults string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	doc, err := definition.ReadSettings(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	settings := connector.NewSettings(doc, env)
	connection, ok := New(settings)
	settings.Unknown()
	var all []string
	for _, fault := range settings.Fields() {
		all = append(all, strings.TrimPrefix(fault.String(), name+":"))
	}
	return connection.(*Server), ok, strings.Join(all, "\n")
}

const login = "username: robot\npassword: ${SMTP_PASSWORD}\n"

// connectTo makes a connection to a server that may be called and trusted.
// More are lines of the definition.
func connectTo(t *testing.T, server *smtpServer, more ...string) *Server {
	t.Helper()
	_, port, err := net.SplitHostPort(server.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	definition := "name: post\nhost: 127.0.0.1\nport: " + port + "\nfrom: Pawl <robot@example.com>\n" + strings.Join(more, "\n")
	s, ok, faults := define(t, environment(t, "127.0.0.0/8"), definition)
	if !ok || faults != "" {
		t.Fatalf("the definition has faults: %s", faults)
	}
	_, s.server.Roots = selfSigned(t)
	return s
}

// hello is a message.
var hello = object{"to": "ann@example.com", "subject": "Hello", "text": "Hello Ann"}

func callOf(t *testing.T, key string, args any) connector.Call {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return connector.Call{Method: "send", Key: key, Args: raw}
}

// send makes a call that works.
func send(t *testing.T, s *Server, key string, args any) object {
	t.Helper()
	raw, err := s.Call(t.Context(), callOf(t, key, args))
	if err != nil {
		t.Fatalf("send(%v): %v", args, err)
	}
	var result object
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// fail makes a call that does not work.
func fail(t *testing.T, ctx context.Context, s *Server, c connector.Call) *connector.Error {
	t.Helper()
	result, err := s.Call(ctx, c)
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Fatalf("%s(%s) = %s, %v; want a *connector.Error", c.Method, c.Args, result, err)
	}
	return e
}

func checkFault(t *testing.T, e *connector.Error, class pawl.Class, code string) {
	t.Helper()
	if e.Class != class || e.Code != code || !e.NotApplied {
		t.Errorf("error is class %s, code %s, not applied %v (%v); want %s, %s, true", e.Class, e.Code, e.NotApplied, e, class, code)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// portOf is the port of a server.
func portOf(t *testing.T, server *smtpServer) int {
	t.Helper()
	_, text, _ := net.SplitHostPort(server.listener.Addr().String())
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
