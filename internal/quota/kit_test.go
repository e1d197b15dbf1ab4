package quota

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// environment is where the secrets of tests come from.
func environment(name string) string {
	return map[string]string{"API_KEY": apiKey, "TOKEN": bearerToken, "PASSWORD": password, "CLIENT_SECRET": clientSecret, "LINES": "one\ntwo"}[name]
}

// The secrets. None of them may be seen anywhere but in requests.
const (
	apiKey       = "key-7Qx/+ a&b"
	bearerToken  = "bearer-4cc92f10"
	password     = "pass:wörd-81\"x"
	clientSecret = "client-secret-5f%2"
	accessToken  = "access-token-"
)

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// providers loads definitions that must be right.
func providers(t testing.TB, text string) *Providers {
	t.Helper()
	p, err := Load([]string{write(t, filepath.Join(t.TempDir(), "providers.yaml"), text)}, nil, environment)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return p
}

// limits are the providers of most tests.
const limits = `
kind: provider
domain: limited.example
limit: 5
period: 1h
---
kind: provider
domain: daily.example
limit: 100
period: 1d
`

func open(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// both runs a test on each database, with a book for the limits.
func both(t *testing.T, test func(t *testing.T, db *store.DB, b *Book)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		db := open(t, url)
		test(t, db, NewBook(db, providers(t, limits), nil, nil))
	})
}

func client(t testing.TB) *outbound.Client {
	t.Helper()
	c, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// tokenServer is a token endpoint that answers as it is told and remembers
// what it got.
type tokenServer struct {
	*httptest.Server
	mu    sync.Mutex
	forms []string
	auths []string
}

func serveTokens(t testing.TB, answer func(w http.ResponseWriter, n int)) *tokenServer {
	t.Helper()
	s := &tokenServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.forms, s.auths = append(s.forms, string(body)), append(s.auths, r.Header.Get("Authorization"))
		n := len(s.forms)
		s.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.forms)
}

// oauthBook is a book with one provider, of oauth.example.
func oauthBook(t testing.TB, tokenURL string, log *slog.Logger) *Book {
	t.Helper()
	p := providers(t, "kind: provider\ndomain: oauth.example\nauth: {type: oauth2, tokenUrl: '"+tokenURL+"', clientId: pawl, clientSecret: '${CLIENT_SECRET}', scope: read}\n")
	return NewBook(nil, p, client(t), log)
}

func request(t testing.TB, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// checkNoSecret fails if a text tells a secret, in any spelling.
func checkNoSecret(t testing.TB, what, text string) {
	t.Helper()
	for _, value := range []string{apiKey, bearerToken, password, clientSecret, accessToken} {
		if redact.New([]redact.Secret{{Name: "it", Value: value}}).Text(text) != text {
			t.Errorf("%s tells a secret: %s", what, text)
		}
	}
}
