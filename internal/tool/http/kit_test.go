package httptool

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token is the secret of the connection.
const token = "tok-4f/9+a z"

type object = map[string]any

// sent is a request as the server got it.
type sent struct {
	method, uri, body string
	header            http.Header
}

// upstream is a server that answers as it is told and remembers what it got.
type upstream struct {
	*httptest.Server
	mu  sync.Mutex
	got []sent
}

func serve(t *testing.T, handle http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.got = append(u.got, sent{r.Method, r.RequestURI, string(body), r.Header.Clone()})
		u.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) requests() []sent {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.got
}

func (u *upstream) last(t *testing.T) sent {
	t.Helper()
	got := u.requests()
	if len(got) == 0 {
		t.Fatal("the server got no request")
	}
	return got[len(got)-1]
}

// reply answers with a status, a content type and a body.
func reply(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// client may call 127.0.0.1 and no other address that is not public.
func client(t *testing.T) *outbound.Client {
	t.Helper()
	allowed, err := outbound.ParsePrefixes([]string{"127.0.0.1/32"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := outbound.New(outbound.Config{AllowPrivate: allowed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func settingsOf(t *testing.T, env connector.Env, text string) *connector.Settings {
	t.Helper()
	doc, err := definition.ReadSettings("shop.yaml", []byte("name: shop\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	s := connector.NewSettings(doc, env)
	return s
}

func environment(name string) string {
	return map[string]string{"SHOP_TOKEN": token, "LINES": "a\nb", "TENANT": "tenant-7f3a"}[name]
}

// connect makes a connection to a server whose secret is token.
func connect(t *testing.T, baseURL, more string) *Service {
	t.Helper()
	env := connector.Env{Getenv: environment, HTTP: client(t)}
	s := settingsOf(t, env, "baseUrl: "+baseURL+"\nheaders: {Authorization: 'Bearer ${SHOP_TOKEN}'}\n"+more)
	connection, ok := New(s)
	s.Unknown()
	if faults := s.Fields(); !ok || len(faults) > 0 {
		t.Fatalf("the definition is refused: %v", faults)
	}
	return connection.(*Service)
}

func callOf(t *testing.T, method string, args any) connector.Call {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := connector.Call{Method: method, Args: raw}
	if effectOf(method) == outbound.Mutation {
		c.Key = "key-1/ä"
	}
	return c
}

// do makes a call that works.
func do(t *testing.T, s *Service, method string, args any) object {
	t.Helper()
	raw, err := s.Call(t.Context(), callOf(t, method, args))
	if err != nil {
		t.Fatalf("%s(%v): %v", method, args, err)
	}
	checkNoSecret(t, string(raw))
	var result object
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// fail makes a call that does not work.
func fail(t *testing.T, s *Service, method string, args any) *connector.Error {
	t.Helper()
	raw, err := s.Call(t.Context(), callOf(t, method, args))
	if err == nil {
		t.Fatalf("%s(%v) = %s; want an error", method, args, raw)
	}
	return own(t, err)
}

// own checks that an error is one of this package and tells no secret.
func own(t *testing.T, err error) *connector.Error {
	t.Helper()
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Fatalf("%v is not a *connector.Error", err)
	}
	checkNoSecret(t, fmt.Sprintf("%v\n%+v\n%v", e, *e, e.Err))
	return e
}

func checkNoSecret(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{token, "tok-4f%2F9%2Ba", base64.StdEncoding.EncodeToString([]byte(token))[:12]} {
		if strings.Contains(text, form) {
			t.Errorf("a secret is told: %s", text)
		}
	}
}

// deadAddress is one of the loopback where nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}
