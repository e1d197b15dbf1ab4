package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

var errGone = errors.New("the lane is another node's")

// permitFor is a permit that holds for so many questions.
func permitFor(n int32) func() error {
	var asked atomic.Int32
	return func() error {
		if asked.Add(1) > n {
			return errGone
		}
		return nil
	}
}

// A permit that ends at any moment of a mutation keeps the rest of it: what is
// said to be unsent was not received, and what is cut off was not received whole.
// Without TLS and with it, with a body and without.
func TestAMutationIsWrittenWhileItsPermitHolds(t *testing.T) {
	for _, body := range []string{"", "small", strings.Repeat("large", 40_000)} {
		for _, secure := range []bool{false, true} {
			var began, whole atomic.Int32
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				began.Add(1)
				if got, err := io.ReadAll(r.Body); err == nil && string(got) == body {
					whole.Add(1)
				}
			})
			var cfg Config
			var s *httptest.Server
			if secure {
				s = httptest.NewTLSServer(handler)
				cfg.RootCAs = trust(s)
			} else {
				s = httptest.NewServer(handler)
			}
			defer s.Close()
			c := newTestClient(t, cfg, "127.0.0.1")
			for n := int32(0); whole.Load() == 0; n++ {
				_, err := callWith(WithPermit(t.Context(), permitFor(n)), c, newRequest(t, "POST", s.URL, body))
				if err == nil {
					if n < 2 {
						t.Errorf("%d bytes, TLS %v: asked %d times only", len(body), secure, n)
					}
					break
				}
				e := mustFail(t, err, KindCancelled)
				if !errors.Is(err, errGone) || !e.MaybeSent && began.Load() > 0 || whole.Load() > 0 {
					t.Fatalf("%d bytes, TLS %v, after %d questions: %v, maybe sent %v; received %d, whole %d",
						len(body), secure, n, err, e.MaybeSent, began.Load(), whole.Load())
				}
				if len(body) < 1000 && e.MaybeSent {
					t.Errorf("%d bytes, TLS %v, after %d questions: of a request that is one piece nothing was sent", len(body), secure, n)
				}
				began.Store(0)
			}
			s.Close() // what was received is counted by now
			if whole.Load() != 1 {
				t.Errorf("%d bytes, TLS %v: received %d times at last", len(body), secure, whole.Load())
			}
		}
	}
}

// Connections that speak something else ask as well; reads do not.
func TestWhoNeedsAPermit(t *testing.T) {
	s := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestClient(t, Config{}, "127.0.0.1")
	ctx := WithPermit(t.Context(), permitFor(0))
	if _, err := callWith(ctx, c, newRequest(t, "GET", s.URL, "")); err != nil {
		t.Errorf("a read: %v", err)
	}
	conn, err := c.Dial(WithPermit(t.Context(), permitFor(1)), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	if _, err := conn.Write([]byte("GET ")); err != nil {
		t.Errorf("the first piece: %v", err)
	}
	if n, err := conn.Write([]byte("/")); n != 0 || !errors.Is(err, errGone) {
		t.Errorf("the second piece: %d, %v", n, err)
	}
	if err := Permitted(ctx); !errors.Is(err, errGone) {
		t.Errorf("asked by hand: %v", err)
	}
	if err := Permitted(t.Context()); err != nil {
		t.Errorf("without a permit: %v", err)
	}
}
