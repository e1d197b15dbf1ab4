package outbound

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLimit bounds every call of a test that should end sooner by itself.
const testLimit = 20 * time.Second

// newTestClient makes a client that may call the given ranges, "127.0.0.0/8"
// for a local server.
func newTestClient(t *testing.T, cfg Config, allow ...string) *Client {
	t.Helper()
	prefixes, err := ParsePrefixes(allow)
	if err != nil {
		t.Fatal(err)
	}
	cfg.AllowPrivate = prefixes
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// answer is what a call gave: a response that was read and closed.
type answer struct {
	status    int
	url, body string
}

// call sends a request and reads the answer, within testLimit.
func call(t *testing.T, c *Client, req *http.Request) (answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	return callWith(ctx, c, req)
}

func callWith(ctx context.Context, c *Client, req *http.Request) (answer, error) {
	resp, err := c.Do(ctx, req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := c.ReadBody(resp)
	return answer{resp.StatusCode, resp.Request.URL.String(), string(body)}, err
}

// wantKind is mustFail for a test that needs no more of the error.
func wantKind(t *testing.T, err error, kind Kind) {
	t.Helper()
	_ = mustFail(t, err, kind)
}

// mustFail checks that err is an *Error of the given kind and returns it.
func mustFail(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *Error of kind %s", err, kind)
	}
	if e.Kind != kind {
		t.Fatalf("got kind %s (%v, cause %v), want %s", e.Kind, e, e.Err, kind)
	}
	return e
}

// newServer starts an HTTP server that closes with the test.
func newServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// newTLSServer is newServer over TLS, with HTTP/2.
func newTLSServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	silence(s)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// silence keeps handshakes that are meant to break out of the test's output.
func silence(s *httptest.Server) {
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
}

// trust returns a pool with the certificate of a TLS server.
func trust(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// rawServer accepts connections and gives each to handle with its number, from
// 1 on; the connection is closed when handle returns, and all of them when the
// test ends. It returns the URL.
func rawServer(t *testing.T, handle func(n int, conn net.Conn, r *bufio.Reader)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			wg.Go(func() {
				defer stop()
				defer func() { _ = conn.Close() }()
				handle(n, conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// readRequest reads one request with its body from a raw connection.
func readRequest(r *bufio.Reader) (*http.Request, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return req, err
}

// waitClosed blocks until the peer closes the connection.
func waitClosed(r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) }

// refusedURL returns a URL of the loopback where nobody listens.
func refusedURL(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}
