package client

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// The command that starts a server and the one that asks it are often one line.
func TestServerThatStartsIsWaitedFor(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := probe.Addr().String()
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	var token string
	var start sync.Once
	c, err := New(Config{
		URL: "http://" + addr, Token: "", Renew: func() string { return token },
		Patience: func() time.Duration {
			start.Do(func() { // somebody was refused: now it starts, with a token that nobody has read
				token = "fresh"
				l, err := net.Listen("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if r.Header.Get("Authorization") != "Bearer fresh" {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					_ = json.NewEncoder(w).Encode(string(body))
				})}}
				s.Start()
				t.Cleanup(s.Close)
			})
			return time.Minute
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.Post(t.Context(), "/x", map[string]int{"a": 1})
	if err != nil || string(raw) != `"{\"a\":1}"`+"\n" {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestTokenIsReadAgainOnlyWhenItIsAnother(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(s.Close)
	for _, renewed := range []string{"", "old"} {
		asked = 0
		c, err := New(Config{URL: s.URL, Token: "old", Renew: func() string { return renewed }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), "/x"); err == nil || asked != 1 {
			t.Errorf("%q: asked %d times, %v", renewed, asked, err)
		}
		c.Close()
	}
}

func TestServerThatDoesNotStartIsWaitedForNoLonger(t *testing.T) {
	asked := 0
	c, err := New(Config{URL: "http://127.0.0.1:1", Patience: func() time.Duration { asked++; return 2 * knock }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(t.Context(), "/x"); pawl.ErrorCode(err) != pawl.CodeUnreachable || asked < 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
