package outbound

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl"
)

// Surface 1, --allow-private: refused unless allowed.
func TestPrivateServerIsCalledOnlyWhenAllowed(t *testing.T) {
	var calls atomic.Int32
	s := newServer(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })

	_, err := call(t, newTestClient(t, Config{}), newRequest(t, "POST", s.URL+"/?token=s3cret", "x"))
	e := mustFail(t, err, KindBlocked)
	if e.MaybeSent || e.Class != pawl.ClassPermission || calls.Load() != 0 {
		t.Errorf("maybe sent %v, class %s, %d calls", e.MaybeSent, e.Class, calls.Load())
	}
	if e.Hint != "allow it with --allow-private 127.0.0.1/32" {
		t.Errorf("hint %q", e.Hint)
	}
	host := strings.TrimPrefix(s.URL, "http://")
	if e.Error() != "POST "+host+": 127.0.0.1 is a loopback address" {
		t.Errorf("message %q", e)
	}

	got, err := call(t, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, "POST", s.URL, "x"))
	if err != nil || got.status != 200 || calls.Load() != 1 {
		t.Errorf("allowed: %v, %d calls", err, calls.Load())
	}
}

func TestEverySpellingOfLoopbackIsRefused(t *testing.T) {
	s := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	c := newTestClient(t, Config{})
	for host, kind := range map[string]Kind{
		"127.0.0.1":                KindBlocked,
		"localhost":                KindBlocked,
		"LOCALHOST":                KindBlocked,
		"127.9.8.7":                KindBlocked,
		"0.0.0.0":                  KindBlocked,
		"[::1]":                    KindBlocked,
		"[::]":                     KindBlocked,
		"[::ffff:127.0.0.1]":       KindBlocked,
		"[::ffff:7f00:1]":          KindBlocked,
		"[64:ff9b::7f00:1]":        KindBlocked,
		"[fe80::1%25lo]":           KindBlocked,
		"2130706433":               KindInvalid,
		"0x7f000001":               KindInvalid,
		"0X7F000001":               KindInvalid,
		"0x7f.1":                   KindInvalid,
		"127.1":                    KindInvalid,
		"0177.0.0.1":               KindInvalid,
		"127.0.0.1.":               KindInvalid,
		"017700000001":             KindInvalid,
		"\uff11\uff12\uff17.0.0.1": KindInvalid, // full-width digits
	} {
		_, err := call(t, c, newRequest(t, "GET", "http://"+host+":"+port+"/", ""))
		if e := mustFail(t, err, kind); e.MaybeSent {
			t.Errorf("%s: may have been sent", host)
		}
	}
}

func TestUnsafeRequestsAreRefusedBeforeAnythingIsDone(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.0/8")
	for name, change := range map[string]func(*http.Request){
		"file":           func(r *http.Request) { r.URL.Scheme = "file" },
		"no scheme":      func(r *http.Request) { r.URL.Scheme = "" },
		"userinfo":       func(r *http.Request) { r.URL.User = url.UserPassword("u", "s3cret") },
		"no host":        func(r *http.Request) { r.URL.Host = "" },
		"only a port":    func(r *http.Request) { r.URL.Host = ":80" },
		"opaque":         func(r *http.Request) { r.URL.Opaque = "//127.0.0.1/s3cret" },
		"port 0":         func(r *http.Request) { r.URL.Host = "127.0.0.1:0" },
		"port too big":   func(r *http.Request) { r.URL.Host = "127.0.0.1:65536" },
		"CONNECT":        func(r *http.Request) { r.Method = "CONNECT" },
		"TRACE":          func(r *http.Request) { r.Method = "TRACE" },
		"bad method":     func(r *http.Request) { r.Method = "PO ST" },
		"no URL":         func(r *http.Request) { r.URL = nil },
		"header value":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer s3cret\n") },
		"header name":    func(r *http.Request) { r.Header["Authorization: s3cret"] = []string{"x"} },
		"header smuggle": func(r *http.Request) { r.Header.Set("X", "a\r\nHost: s3cret") },
	} {
		body := &closeCounter{Reader: strings.NewReader("body")}
		req := newRequest(t, "POST", "http://127.0.0.1:9/?q=s3cret", "")
		req.Body = body
		change(req)
		_, err := call(t, c, req)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		e := mustFail(t, err, KindInvalid)
		if e.MaybeSent || e.Class != pawl.ClassLogic {
			t.Errorf("%s: maybe sent %v, class %s", name, e.MaybeSent, e.Class)
		}
		if strings.Contains(e.Error(), "s3cret") {
			t.Errorf("%s: message tells the secret: %v", name, e)
		}
		if body.closed.Load() == 0 {
			t.Errorf("%s: the body was not closed", name)
		}
	}
}

func TestHeaderWithALineBreakIsNamed(t *testing.T) {
	c := newTestClient(t, Config{})
	req := newRequest(t, "GET", "http://example.com/", "")
	req.Header.Set("X-Api-Key", "s3cret\n")
	_, err := call(t, c, req)
	if e := mustFail(t, err, KindInvalid); !strings.Contains(e.Error(), "X-Api-Key") || strings.Contains(e.Error(), "s3cret") {
		t.Errorf("message %q", e)
	}
}

// A name is judged by what it resolves to, each time it is dialled.
func TestNameIsJudgedByItsAddressAtEveryDial(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	c := newTestClient(t, Config{}, "127.0.0.1")
	var answer atomic.Value
	answer.Store([]byte{127, 0, 0, 1})
	c.dialer.Resolver = fakeResolver(t, func() []byte { return answer.Load().([]byte) })
	req := func() *http.Request { return newRequest(t, "GET", "http://rebind.test:"+port+"/", "") }

	if _, err := call(t, c, req()); err != nil {
		t.Fatalf("allowed address: %v", err)
	}
	answer.Store([]byte{169, 254, 169, 254})
	_, err := call(t, c, req())
	if e := mustFail(t, err, KindBlocked); strings.Contains(e.Error()+e.Hint+fmt.Sprint(e.Err), "169.254") {
		t.Errorf("%v (%v), hint %q", e, e.Err, e.Hint)
	}
	if conn, err := c.Dial(t.Context(), "tcp", "rebind.test:"+port); err == nil || conn != nil || strings.Contains(err.Error(), "169.254") || !strings.Contains(err.Error(), "not public") {
		t.Errorf("a dial: %v", err)
	}
}

func TestUnknownNameIsTransientAndNotSent(t *testing.T) {
	c := newTestClient(t, Config{})
	c.dialer.Resolver = fakeResolver(t, func() []byte { return nil })
	_, err := call(t, c, newRequest(t, "POST", "http://nobody.test/?q=s3cret", "x"))
	e := mustFail(t, err, KindDNS)
	if e.MaybeSent || e.Class != pawl.ClassTransient || e.Error() != "POST nobody.test: no such host" {
		t.Errorf("maybe sent %v, class %s, message %q", e.MaybeSent, e.Class, e)
	}
}

// A proxy would dial in place of the guarded dialer. net/http reads the
// environment once per process, so this looks at the transports themselves.
func TestNoProxyIsUsed(t *testing.T) {
	c := newTestClient(t, Config{})
	if c.reads.Proxy != nil || c.mutations.Proxy != nil {
		t.Error("a transport has a proxy")
	}
}

// fakeResolver asks a local DNS server that gives every name one IPv4 address,
// or says that it does not exist when address returns nil.
func fakeResolver(t *testing.T, address func() []byte) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, peer, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(dnsAnswer(buf[:n], address()), peer)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// dnsAnswer answers a query with one question: its A record, no record for
// other types, or NXDOMAIN without an address.
func dnsAnswer(query, ip []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // root label, type, class
	out := append([]byte{}, query[:end]...)
	out[2], out[3] = 0x84, 0x00 // answer, authoritative
	out[7], out[9], out[11] = 0, 0, 0
	if ip == nil {
		out[3] = 3
		return out
	}
	if query[end-3] == 1 { // type A
		out[7] = 1
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, ip...)
	}
	return out
}
