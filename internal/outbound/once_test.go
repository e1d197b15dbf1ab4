package outbound

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl"
)

// staleServer answers and keeps the connection. It counts requests of /cut, and
// closes the connection on them without an answer, as if it had been idle for
// too long: a connection that is left from other calls dies while /cut uses it.
func staleServer(t *testing.T) (url string, cuts *atomic.Int32) {
	cuts = new(atomic.Int32)
	url = rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		for {
			req, err := readRequest(r)
			if err != nil {
				return
			}
			if req.URL.Path == "/cut" {
				cuts.Add(1)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	return url, cuts
}

func keyedRequest(t *testing.T, method, url, body string) *http.Request {
	req := newRequest(t, method, url, body)
	req.Header.Set("Idempotency-Key", "k1")
	return req
}

// Design 6 and 8: a mutation is never repeated by itself. Context 3.5, 6: what
// is not known never becomes failed.
func TestMutationIsSentOnceOnAStaleConnection(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, body := range []string{"", "body"} {
			url, cuts := staleServer(t)
			c := newTestClient(t, Config{}, "127.0.0.1")
			for _, earlier := range []string{"GET", method} { // would leave connections to reuse
				if _, err := call(t, c, keyedRequest(t, earlier, url, "")); err != nil {
					t.Fatal(err)
				}
			}
			_, err := call(t, c, keyedRequest(t, method, url+"/cut", body))
			e := mustFail(t, err, KindBroken)
			if cuts.Load() != 1 || !e.MaybeSent || e.Class != pawl.ClassIndeterminate {
				t.Errorf("%s with body %q: sent %d times, maybe sent %v, class %s",
					method, body, cuts.Load(), e.MaybeSent, e.Class)
			}
		}
	}
}

// This is why mutations have a transport of their own: the one for reads, like
// any of net/http, sends a POST with an Idempotency-Key again by itself.
func TestSharedConnectionsWouldResendAMutation(t *testing.T) {
	url, cuts := staleServer(t)
	c := newTestClient(t, Config{}, "127.0.0.1")
	if _, err := call(t, c, newRequest(t, "GET", url, "")); err != nil {
		t.Fatal(err)
	}
	resp, err := c.reads.RoundTrip(keyedRequest(t, "POST", url+"/cut", "body"))
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("the server answered")
	}
	if cuts.Load() != 2 {
		t.Errorf("sent %d times; when it is once, net/http has changed and the second transport may go", cuts.Load())
	}
}

func TestReadsShareAConnectionAndMutationsDoNot(t *testing.T) {
	var conns atomic.Int32
	url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		conns.Add(1)
		for {
			if _, err := readRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	for method, want := range map[string]int32{"GET": 1, "POST": 5} {
		c := newTestClient(t, Config{}, "127.0.0.1")
		conns.Store(0)
		for range 5 {
			if got, err := call(t, c, newRequest(t, method, url, "")); err != nil || got.body != "ok" {
				t.Fatalf("%s: %q, %v", method, got.body, err)
			}
		}
		if conns.Load() != want {
			t.Errorf("%s: %d connections, want %d", method, conns.Load(), want)
		}
	}
}

// A read survives a connection that died while it was idle.
func TestReadIsSentAgainOnAStaleConnection(t *testing.T) {
	var calls atomic.Int32
	url := rawServer(t, func(n int, conn net.Conn, r *bufio.Reader) {
		for i := 0; ; i++ {
			if _, err := readRequest(r); err != nil {
				return
			}
			calls.Add(1)
			if n == 1 && i == 1 {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	c := newTestClient(t, Config{}, "127.0.0.1")
	for range 2 {
		if _, err := call(t, c, newRequest(t, "GET", url, "")); err != nil {
			t.Fatal(err)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("got %d requests, want 3", calls.Load())
	}
}

func TestReadsSpeakHTTP2AndMutationsHTTP1(t *testing.T) {
	s := newTLSServer(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	c := newTestClient(t, Config{RootCAs: trust(s)}, "127.0.0.1")
	for method, want := range map[string]string{"GET": "HTTP/2.0", "POST": "HTTP/1.1"} {
		if got, err := call(t, c, newRequest(t, method, s.URL, "")); err != nil || got.body != want {
			t.Errorf("%s: %q, %v", method, got.body, err)
		}
	}
}

// After a 307 the error speaks of the second request: the first was answered.
func TestFailureAfterARedirectedMutationSpeaksOfTheLastRequest(t *testing.T) {
	var calls atomic.Int32
	url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err == nil && calls.Add(1) == 1 {
			_, _ = io.WriteString(conn, "HTTP/1.1 307 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
		}
	})
	_, err := call(t, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, "POST", url, "body"))
	e := mustFail(t, err, KindBroken)
	if calls.Load() != 2 || !e.MaybeSent || e.Status != 0 || e.Class != pawl.ClassIndeterminate {
		t.Errorf("%d calls, maybe sent %v, status %d, class %s", calls.Load(), e.MaybeSent, e.Status, e.Class)
	}
}
