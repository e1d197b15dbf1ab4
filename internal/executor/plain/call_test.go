package plain

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
)

// caller is a client that may call loopback and nothing else that is private.
func caller(t *testing.T) *outbound.Client {
	t.Helper()
	allow, err := outbound.ParsePrefixes([]string{"127.0.0.1/32"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := outbound.New(outbound.Config{AllowPrivate: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// surface-2, 1: a URL is called with its method, headers and body, and a key;
// 2xx is success, and what it answers is kept.
func TestAURLIsCalled(t *testing.T) {
	k := newKit(t)
	var got, body string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type"), string(raw)
		w.Header().Set("X-Trace", "t1")
		w.Header().Set("Set-Cookie", "id=1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks for hush-hush-hush \xff")
	})
	result, o := k.run(client.PlainRun{URL: url + "/cron", Headers: map[string]string{"Authorization": "Bearer ${API_TOKEN}"}, Body: []byte(`{"full":true}`)})
	if !result.OK || got != "POST /cron s:at Bearer hush-hush-hush application/json" || body != `{"full":true}` {
		t.Errorf("%+v: %s, %s", result, got, body)
	}
	if o.Status != 202 || o.Body != `thanks for [secret API_TOKEN] \xff` || o.Headers["X-Trace"] != "t1" || o.Headers["Set-Cookie"] != "" {
		t.Errorf("%+v", o)
	}
	k.run(client.PlainRun{URL: url, Method: "put", Body: []byte(`"as it is"`)})
	if got != "PUT / s:at  text/plain; charset=utf-8" || body != "as it is" {
		t.Errorf("%s, %s", got, body)
	}
}

// What an answer means, or none: one that arrived is known; after a request that
// was sent, nobody knows, unless it only reads.
func TestWhatAnAnswerMeans(t *testing.T) {
	refuses := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "why")
		}
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	breaks := func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		run     client.PlainRun
		idem    bool
		code    string
		unknown bool
		retry   bool
		after   time.Duration
	}{
		{"503", refuses(503), client.PlainRun{}, false, runner.CodeInternal, false, true, 7 * time.Second},
		{"429", refuses(429), client.PlainRun{}, false, runner.CodeRateLimit, false, true, 7 * time.Second},
		{"404", refuses(404), client.PlainRun{}, false, runner.CodeNotFound, false, true, 7 * time.Second},
		{"400", refuses(400), client.PlainRun{}, false, runner.CodeInvalidRequest, false, true, 7 * time.Second},
		{"hangs", hangs, client.PlainRun{Timeout: "1s"}, false, runner.CodeTimeout, true, false, 0},
		{"hangs, may be called twice", hangs, client.PlainRun{Timeout: "1s"}, true, runner.CodeTimeout, false, true, 0},
		{"hangs, only reads", hangs, client.PlainRun{Timeout: "1s", Method: "GET"}, false, runner.CodeTimeout, false, true, 0},
		{"breaks", breaks, client.PlainRun{}, false, runner.CodeInternal, true, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKit(t)
			c.run.URL = serve(t, c.handler)
			r := runOf(c.run)
			r.Idempotent = c.idem
			result, err := k.Run(t.Context(), r, k.emit)
			if err != nil || result.OK || result.Code != c.code || result.Unknown != c.unknown || result.Retry != c.retry || result.RetryAfter != c.after {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if result, _ := newKit(t).run(client.PlainRun{URL: "http://" + address}); result.OK || result.Unknown || !result.Retry {
			t.Errorf("%+v", result)
		}
	})
	t.Run("a private address", func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2:9/inside", http.StatusFound)
		})
		for _, method := range []string{"GET", "POST"} {
			if result, _ := newKit(t).run(client.PlainRun{URL: url, Method: method}); result.OK || result.Retry && method == "GET" {
				t.Errorf("%s: %+v", method, result)
			}
		}
		if result, _ := newKit(t).run(client.PlainRun{URL: "http://10.0.0.1/"}); result.OK || result.Retry || !strings.Contains(result.Message, "--allow-private") {
			t.Errorf("%+v", result)
		}
	})
}

// An answer without an end is cut, and is a success all the same.
func TestAnEndlessAnswerIsCut(t *testing.T) {
	k := newKit(t)
	var sent int64
	ended := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		block := []byte(strings.Repeat("z", 1<<16))
		for range 10 << 30 >> 16 {
			n, err := w.Write(block)
			sent += int64(n)
			if err != nil {
				return
			}
		}
	})
	result, o := k.run(client.PlainRun{URL: url})
	<-ended
	if !result.OK || len(o.Body) != kept || !o.Truncated || sent > 64<<20 {
		t.Errorf("%v: %d kept of %d", result.OK, len(o.Body), sent)
	}
}

// A call that is stopped with the server is not known to have failed.
func TestACallEndsWithTheServer(t *testing.T) {
	k := newKit(t)
	ctx, stop := context.WithCancelCause(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		stop(io.ErrClosedPipe)
		<-r.Context().Done()
	})
	if _, err := k.Run(ctx, runOf(client.PlainRun{URL: url}), k.emit); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
