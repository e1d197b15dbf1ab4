package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

type closeCounter struct {
	io.Reader
	closed atomic.Int32
}

func (c *closeCounter) Close() error {
	c.closed.Add(1)
	return nil
}

// Surface 3: "refused, DNS, TLS before anything was sent" against "timeout or
// reset after sending, unreadable answer".
func TestFaultsOfTheServerAreClassified(t *testing.T) {
	cut := func(answer string) func(int, net.Conn, *bufio.Reader) {
		return func(_ int, conn net.Conn, r *bufio.Reader) {
			if _, err := readRequest(r); err == nil {
				_, _ = io.WriteString(conn, answer)
			}
		}
	}
	tests := []struct {
		name   string
		handle func(int, net.Conn, *bufio.Reader) // nil: nobody listens
		kind   Kind
		sent   bool
		status int
	}{
		{"refused", nil, KindConnect, false, 0},
		{"closed without reading", func(int, net.Conn, *bufio.Reader) {}, KindBroken, true, 0},
		{"closed after reading", cut(""), KindBroken, true, 0},
		{"reset after reading", func(_ int, conn net.Conn, r *bufio.Reader) {
			_, _ = readRequest(r)
			_ = conn.(*net.TCPConn).SetLinger(0)
		}, KindBroken, true, 0},
		{"cut in the status line", cut("HTTP/1.1 20"), KindUnreadable, true, 0},
		{"cut in the headers", cut("HTTP/1.1 200 OK\r\nContent-Le"), KindUnreadable, true, 0},
		{"not HTTP", cut("220 smtp.example ESMTP\r\n"), KindUnreadable, true, 0},
		{"headers without end", func(_ int, conn net.Conn, r *bufio.Reader) {
			_, _ = readRequest(r)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 2*maxHeaderBytes))
			waitClosed(r)
		}, KindUnreadable, true, 0},
		{"cut in the body", cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), KindUnreadable, true, 200},
		{"cut in a chunk", cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"), KindUnreadable, true, 200},
		{"broken gzip", cut("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), KindUnreadable, true, 200},
	}
	for _, tt := range tests {
		for _, method := range []string{"GET", "POST"} {
			t.Run(tt.name+"/"+method, func(t *testing.T) {
				url := refusedURL(t)
				if tt.handle != nil {
					url = rawServer(t, tt.handle)
				}
				_, err := call(t, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, method, url+"/p?q=s3cret", "body"))
				e := mustFail(t, err, tt.kind)
				class := pawl.ClassTransient
				if tt.sent && method == "POST" {
					class = pawl.ClassIndeterminate
				}
				if e.MaybeSent != tt.sent || e.Class != class || e.Status != tt.status {
					t.Errorf("maybe sent %v, class %s, status %d", e.MaybeSent, e.Class, e.Status)
				}
				if strings.Contains(e.Error(), "s3cret") || !strings.Contains(e.Error(), strings.TrimPrefix(url, "http://")) {
					t.Errorf("message %q", e)
				}
			})
		}
	}
}

// An answer may echo the request, so its text must not reach the message.
func TestEchoOfTheRequestIsNotInTheMessage(t *testing.T) {
	url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		line, _ := r.ReadString('\n')
		_, _ = io.WriteString(conn, line)
	})
	_, err := call(t, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, "GET", url+"/?q=s3cret", ""))
	if e := mustFail(t, err, KindUnreadable); strings.Contains(e.Error(), "s3cret") {
		t.Errorf("message %q", e)
	}
}

func TestLostBodyDoesNotChangeANo(t *testing.T) {
	url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		_, _ = readRequest(r)
		_, _ = io.WriteString(conn, "HTTP/1.1 422 No\r\nContent-Length: 9\r\n\r\nabc")
	})
	_, err := call(t, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, "POST", url, "body"))
	e := mustFail(t, err, KindUnreadable)
	if v := e.Verdict(Mutation); v != (Verdict{pawl.ClassLogic, NotHappened}) || e.Class != pawl.ClassLogic {
		t.Errorf("verdict %v, class %s", v, e.Class)
	}
}

func TestConnectionRefusedKeepsItsCause(t *testing.T) {
	_, err := call(t, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, "GET", refusedURL(t), ""))
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if !strings.HasSuffix(err.Error(), ": connection refused") {
		t.Errorf("message %q", err)
	}
}

func TestTLSFaultsAreNotSent(t *testing.T) {
	hang := func(_ int, _ net.Conn, r *bufio.Reader) { waitClosed(r) }
	untrusted := newTLSServer(t, http.NotFound)
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	silence(old)
	old.StartTLS()
	t.Cleanup(old.Close)
	plain := newServer(t, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		url  string
		kind Kind
		text string
	}{
		"unknown authority": {untrusted.URL, KindTLS, "certificate"},
		"too old":           {old.URL, KindTLS, "protocol version"},
		"plain HTTP":        {strings.Replace(plain.URL, "http:", "https:", 1), KindTLS, "does not speak TLS"},
		"closed":            {strings.Replace(rawServer(t, func(int, net.Conn, *bufio.Reader) {}), "http:", "https:", 1), KindTLS, ""},
		"hangs":             {strings.Replace(rawServer(t, hang), "http:", "https:", 1), KindTimeout, "TLS handshake"},
	} {
		cfg := Config{}
		if c.kind == KindTimeout {
			cfg.TLSTimeout = 200 * time.Millisecond
		}
		client := newTestClient(t, cfg, "127.0.0.1")
		for _, method := range []string{"GET", "POST"} {
			_, err := call(t, client, newRequest(t, method, c.url, ""))
			e := mustFail(t, err, c.kind)
			if e.MaybeSent || e.Class != pawl.ClassTransient || !strings.Contains(e.Error(), c.text) {
				t.Errorf("%s %s: maybe sent %v, class %s, message %q", name, method, e.MaybeSent, e.Class, e)
			}
		}
	}
}

func TestContextThatEndedBeforeIsNotSent(t *testing.T) {
	s := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	c := newTestClient(t, Config{}, "127.0.0.1")
	why := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := callWith(ctx, c, newRequest(t, "POST", s.URL, "x"))
	e := mustFail(t, err, KindCancelled)
	if e.MaybeSent || e.Class != pawl.ClassTransient || !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("maybe sent %v, class %s, cause %v", e.MaybeSent, e.Class, e.Err)
	}
}

// enough is the time in which a busy machine certainly connects and answers.
const enough = time.Second

func TestCallThatHangsEnds(t *testing.T) {
	t.Parallel()
	head := "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
	for _, method := range []string{"GET", "POST"} {
		for _, answer := range []string{"", "HTTP/1.1 200", head} {
			t.Run(fmt.Sprintf("%s deadline after %d bytes", method, len(answer)), func(t *testing.T) {
				t.Parallel()
				url := hangingServer(t, answer, make(chan struct{}))
				ctx, cancel := context.WithTimeout(t.Context(), enough)
				defer cancel()
				_, err := callWith(ctx, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, method, url, "x"))
				checkUnknown(t, err, method, KindTimeout, context.DeadlineExceeded)
			})
			t.Run(fmt.Sprintf("%s cancel after %d bytes", method, len(answer)), func(t *testing.T) {
				t.Parallel()
				got := make(chan struct{})
				url := hangingServer(t, answer, got)
				ctx, cancel := context.WithCancelCause(t.Context())
				why := errors.New("stopped by the user")
				go func() { <-got; cancel(why) }()
				_, err := callWith(ctx, newTestClient(t, Config{}, "127.0.0.1"), newRequest(t, method, url, "x"))
				checkUnknown(t, err, method, KindCancelled, why)
			})
		}
	}
}

// hangingServer reads a request, answers a part, closes got and waits.
func hangingServer(t *testing.T, answer string, got chan struct{}) string {
	return rawServer(t, func(n int, conn net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(conn, answer)
		if n == 1 {
			close(got)
		}
		waitClosed(r)
	})
}

func checkUnknown(t *testing.T, err error, method string, kind Kind, cause error) {
	t.Helper()
	e := mustFail(t, err, kind)
	want := pawl.ClassTransient
	if method == "POST" {
		want = pawl.ClassIndeterminate
	}
	if !e.MaybeSent || e.Class != want || !errors.Is(err, cause) {
		t.Errorf("maybe sent %v, class %s, cause %v", e.MaybeSent, e.Class, e.Err)
	}
}

func TestCallWithoutDeadlineWaitsForTheHeadAtMostHeaderTimeout(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, Config{HeaderTimeout: enough}, "127.0.0.1")
	_, err := callWith(t.Context(), c, newRequest(t, "POST", hangingServer(t, "", make(chan struct{})), "x"))
	checkUnknown(t, err, "POST", KindTimeout, context.DeadlineExceeded)
	if errors.Is(err, context.Canceled) {
		t.Error("a timeout also claims to be a cancellation")
	}
}

func TestHeaderTimeoutEndsNeitherABodyNorACallWithADeadline(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "slow ")
			_ = http.NewResponseController(w).Flush()
		}
		<-release
		_, _ = io.WriteString(w, "answer")
	})
	c := newTestClient(t, Config{HeaderTimeout: enough}, "127.0.0.1")
	timer := time.AfterFunc(2*enough, func() { close(release) })
	defer timer.Stop()

	var both sync.WaitGroup
	both.Go(func() {
		if got, err := call(t, c, newRequest(t, "GET", s.URL, "")); err != nil || got.body != "answer" {
			t.Errorf("deadline: got %q, %v", got.body, err)
		}
	})
	both.Go(func() {
		got, err := callWith(t.Context(), c, newRequest(t, "GET", s.URL+"/body", ""))
		if err != nil || got.body != "slow answer" {
			t.Errorf("slow body: got %q, %v", got.body, err)
		}
	})
	both.Wait()
}
