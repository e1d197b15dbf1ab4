package quota

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

// grant answers with the n-th token.
func grant(w http.ResponseWriter, n int) {
	_, _ = fmt.Fprintf(w, `{"access_token": "%s%d", "token_type": "Bearer", "expires_in": 3600}`, accessToken, n)
}

// authorized is the header that a request gets.
func authorized(t testing.TB, b *Book) (*http.Request, string) {
	t.Helper()
	req := request(t, "https://oauth.example/items")
	if err := b.Authorize(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return req, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
}

// change alters the token that a book has.
func change(b *Book, with func(k *keeper)) {
	k := b.tokens["oauth.example"]
	k.mu.Lock()
	defer k.mu.Unlock()
	with(k)
}

// However many want a token at once, one request is made for it.
func TestManyCallsMakeOneTokenRequest(t *testing.T) {
	release := make(chan struct{})
	server := serveTokens(t, func(w http.ResponseWriter, n int) { <-release; grant(w, n) })
	b := oauthBook(t, server.URL+"/token", nil)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if _, token := authorized(t, b); token != accessToken+"1" {
				t.Errorf("the token is %s", token)
			}
		})
	}
	close(release)
	group.Wait()
	if n := server.count(); n != 1 {
		t.Errorf("%d requests were made, want 1", n)
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("pawl:"+url.QueryEscape(clientSecret)))
	if server.auths[0] != want || server.forms[0] != "grant_type=client_credentials&scope=read" {
		t.Errorf("the endpoint got %s %s", server.auths[0], server.forms[0])
	}
	if got := b.providers.Redact("Bearer " + accessToken + "1"); strings.Contains(got, accessToken) {
		t.Errorf("the token is not redacted: %s", got)
	}
}

// Who asks first and gives up does not take the token from the others.
func TestTokenRequestOutlivesWhoAskedFirst(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := serveTokens(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			close(arrived)
		}
		<-release
		grant(w, n)
	})
	b := oauthBook(t, server.URL, nil)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	req := request(t, "https://oauth.example/")
	go func() { gaveUp <- b.Authorize(ctx, req) }()
	<-arrived
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	close(release)
	if _, token := authorized(t, b); token != accessToken+"1" || server.count() != 1 {
		t.Errorf("the token is %s after %d requests", token, server.count())
	}
}

func TestClientCanProveItselfInTheForm(t *testing.T) {
	server := serveTokens(t, grant)
	p := providers(t, "kind: provider\ndomain: oauth.example\nauth: {type: oauth2, clientAuth: body, tokenUrl: '"+server.URL+"', clientId: pawl, clientSecret: '${CLIENT_SECRET}'}\n")
	authorized(t, NewBook(nil, p, client(t), nil))
	want := "client_id=pawl&client_secret=" + url.QueryEscape(clientSecret) + "&grant_type=client_credentials"
	if server.forms[0] != want || server.auths[0] != "" {
		t.Errorf("the endpoint got %q %s", server.auths[0], server.forms[0])
	}
}

// A token is renewed before it ends; if that does not work, it is used to its
// end and no longer.
func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	var failing atomic.Bool
	server := serveTokens(t, func(w http.ResponseWriter, n int) {
		if failing.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		grant(w, n)
	})
	b := oauthBook(t, server.URL, nil)
	expect := func(token string, requests int) {
		t.Helper()
		if _, got := authorized(t, b); got != token || server.count() != requests {
			t.Errorf("the token is %s after %d requests, want %s after %d", got, server.count(), token, requests)
		}
	}
	expect(accessToken+"1", 1)
	expect(accessToken+"1", 1)
	change(b, func(k *keeper) {
		if early := k.current.expiresAt.Sub(k.current.renewAt); early != time.Minute {
			t.Errorf("it is renewed %v before its end", early)
		}
		k.current.renewAt = time.Now().Add(-time.Second)
	})
	expect(accessToken+"2", 2)
	failing.Store(true)
	change(b, func(k *keeper) { k.current.renewAt = time.Now().Add(-time.Second) })
	expect(accessToken+"2", 3)
	expect(accessToken+"2", 3) // it is not tried with every call
	change(b, func(k *keeper) { k.failedAt = time.Now().Add(-time.Minute) })
	expect(accessToken+"2", 4)
	change(b, func(k *keeper) { k.current.expiresAt = time.Now() })
	if err := b.Authorize(t.Context(), request(t, "https://oauth.example/")); err == nil {
		t.Error("a token was used after its end")
	}
}

// A token that the server refuses is given up once; a server that refuses
// every token does not make us ask with every call.
func TestTokenIsRenewedAfterARefusal(t *testing.T) {
	server := serveTokens(t, grant)
	b := oauthBook(t, server.URL, nil)
	expect := func(what, want string) *http.Request {
		t.Helper()
		req, token := authorized(t, b)
		if token != accessToken+want || fmt.Sprint(server.count()) != want {
			t.Errorf("%s: the token is %s after %d requests, want %s", what, token, server.count(), want)
		}
		return req
	}
	first := expect("new", "1")
	b.Rejected(first)
	second := expect("after the first refusal", "2")
	change(b, func(k *keeper) { k.rejectedAt = time.Time{} })
	b.Rejected(first)
	expect("after a late answer to the old token", "2")
	b.Rejected(second)
	third := expect("after a refusal of the new one", "3")
	b.Rejected(third)
	expect("from a server that refuses every token", "3")
	change(b, func(k *keeper) { k.rejectedAt = time.Now().Add(-time.Hour) })
	b.Rejected(third)
	expect("after a refusal much later", "4")
	b.Rejected(request(t, "https://other.example/")) // has no token, which is no fault
}

// An endpoint that does not give a token: whether a person has to look, and
// nothing but the domain is told.
func TestTokenEndpointThatFails(t *testing.T) {
	answer := func(status int, body string) func(w http.ResponseWriter, n int) {
		return func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "https://elsewhere.example/"+clientSecret)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	echo := `{"error": "bad secret ` + clientSecret + `"}`
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, n int)
		class  pawl.Class
	}{
		"bad request":  {answer(400, echo), pawl.ClassAuth},
		"unauthorized": {answer(401, echo), pawl.ClassAuth},
		"not found":    {answer(404, echo), pawl.ClassAuth},
		"redirect":     {answer(302, echo), pawl.ClassAuth},
		"moved":        {answer(307, echo), pawl.ClassAuth},
		"too many":     {answer(429, echo), pawl.ClassTransient},
		"server error": {answer(500, echo), pawl.ClassTransient},
		"unavailable":  {answer(503, echo), pawl.ClassTransient},
		"page":         {answer(200, "<html>"+clientSecret), pawl.ClassTransient},
		"no token":     {answer(200, echo), pawl.ClassAuth},
		"other type":   {answer(200, `{"access_token": "`+accessToken+`", "token_type": "mac"}`), pawl.ClassAuth},
		"line break":   {answer(200, `{"access_token": "`+accessToken+`\r\nHost: x"}`), pawl.ClassAuth},
		"too large":    {answer(200, `{"access_token": "`+strings.Repeat("a", 1<<20)+`"}`), ""},
		"cut off":      {func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, pawl.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			server := serveTokens(t, c.answer)
			b := oauthBook(t, server.URL+"/t?x="+url.QueryEscape(apiKey), slog.New(slog.NewTextHandler(&log, nil)))
			err := b.Authorize(t.Context(), request(t, "https://oauth.example/"))
			e, ok := errors.AsType[*CredentialError](err)
			if !ok || c.class != "" && e.Class != c.class || e.Domain != "oauth.example" {
				t.Fatalf("answered %#v, want class %s", err, c.class)
			}
			if e.Class == pawl.ClassTransient && strings.HasPrefix(name, "too many") && e.RetryAfter != 7*time.Second {
				t.Errorf("the wait is %v", e.RetryAfter)
			}
			if unavailable := errors.Is(err, pawl.ErrUnavailable); unavailable != (e.Class == pawl.ClassTransient) {
				t.Errorf("unavailable %v, with the class %s", unavailable, e.Class)
			}
			text := fmt.Sprintf("%v %+v %s %s", err, *e, e.Hint, log.String())
			checkNoSecret(t, "the error", text)
			if !strings.Contains(err.Error(), "oauth.example") || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "elsewhere") {
				t.Errorf("the error tells %s", text)
			}
		})
	}
}

// A life that is not told, or makes no sense, is a short one.
func TestLifeOfTokensIsBounded(t *testing.T) {
	for told, want := range map[string]time.Duration{
		"3600": time.Hour, `"60"`: time.Minute, "90.5": 90500 * time.Millisecond, "1e3": defaultTokenLife, "999999999999": 24 * time.Hour,
		"0": defaultTokenLife, "-5": defaultTokenLife, "null": defaultTokenLife, `"soon"`: defaultTokenLife, "{}": defaultTokenLife,
	} {
		got, _, reason := readToken([]byte(`{"access_token": "abc", "expires_in": `+told+`}`), noon())
		if life := got.expiresAt.Sub(noon()); reason != "" || life != want || !got.renewAt.Before(got.expiresAt) || !got.renewAt.After(noon()) {
			t.Errorf("expires_in %s: a life of %v, renewed after %v (%s); want %v", told, life, got.renewAt.Sub(noon()), reason, want)
		}
	}
}
