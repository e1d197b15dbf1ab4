package outbound

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestNewRefusesABadConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"body":    {MaxBody: -1},
		"dial":    {DialTimeout: -time.Second},
		"tls":     {TLSTimeout: -time.Second},
		"header":  {HeaderTimeout: -time.Second},
		"private": {AllowPrivate: []netip.Prefix{{}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCallerDoesNotDecideAboutTheConnection(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header, r.UserAgent()) })
	c := newTestClient(t, Config{UserAgent: "pawl/1.0"}, "127.0.0.1")
	req := newRequest(t, "GET", s.URL, "")
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authorization", "Te", "Upgrade", "Expect"} {
		req.Header.Set(name, "s3cret")
	}
	req.Header["proxy-connection"] = []string{"s3cret"}
	req.Header.Set("X-Kept", "kept")
	got, err := call(t, c, req)
	if err != nil || strings.Contains(got.body, "s3cret") || !strings.Contains(got.body, "kept") || !strings.HasSuffix(got.body, "pawl/1.0") {
		t.Errorf("got %s, %v", got.body, err)
	}
	req.Header.Set("User-Agent", "mine")
	req.Header.Set("Accept-Encoding", "identity")
	if got, err = call(t, c, req); err != nil || !strings.HasSuffix(got.body, "mine") || !strings.Contains(got.body, "identity") {
		t.Errorf("got %s, %v", got.body, err)
	}
}

func TestRequestOfTheCallerIsNotChanged(t *testing.T) {
	s := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestClient(t, Config{}, "127.0.0.1")
	req := newRequest(t, "GET", s.URL, "")
	req.Header = nil
	if _, err := call(t, c, req); err != nil || req.Header != nil {
		t.Errorf("%v, headers %v", err, req.Header)
	}
}

func TestClosingTheBodyEndsTheContextOfTheRequest(t *testing.T) {
	s := newServer(t, func(http.ResponseWriter, *http.Request) {})
	c := newTestClient(t, Config{}, "127.0.0.1")
	resp, err := c.Do(t.Context(), newRequest(t, "GET", s.URL, ""))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Request.Context().Err() != nil {
		t.Error("the context ended before the body was closed")
	}
	_ = resp.Body.Close()
	if resp.Request.Context().Err() == nil {
		t.Error("the context of the request is still alive")
	}
}

func TestCloseEndsIdleConnections(t *testing.T) {
	closed := make(chan struct{})
	url := rawServer(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := readRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		waitClosed(r)
		close(closed)
	})
	c := newTestClient(t, Config{}, "127.0.0.1")
	if _, err := call(t, c, newRequest(t, "GET", url, "")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	select {
	case <-closed:
	case <-time.After(testLimit):
		t.Fatal("the idle connection is still open")
	}
}

func TestClientIsSafeForConcurrentUse(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	c := newTestClient(t, Config{}, "127.0.0.1")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			want := fmt.Sprint("body ", i)
			method := []string{"GET", "POST"}[i%2]
			if got, err := call(t, c, newRequest(t, method, s.URL, want)); err != nil || got.body != want {
				t.Errorf("%s: %q, %v", method, got.body, err)
			}
		})
	}
	wg.Wait()
}
