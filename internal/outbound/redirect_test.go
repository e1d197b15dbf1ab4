package outbound

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
)

// recorder is a server that remembers what it was asked. /to?status=S&url=U
// answers a redirect, everything else 200.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seen
}

type seen struct {
	method, path, body, host string
	header                   http.Header
}

func newRecorder(t *testing.T) *recorder {
	rec := &recorder{}
	rec.Server = newServer(t, rec.serve)
	return rec
}

func (rec *recorder) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rec.mu.Lock()
	rec.seen = append(rec.seen, seen{r.Method, r.URL.Path, string(body), r.Host, r.Header})
	rec.mu.Unlock()
	if r.URL.Path != "/to" {
		_, _ = io.WriteString(w, "arrived")
		return
	}
	var status int
	_, _ = fmt.Sscan(r.URL.Query().Get("status"), &status)
	w.Header().Set("Location", r.URL.Query().Get("url"))
	w.WriteHeader(status)
}

// to is a URL of rec that redirects to target.
func (rec *recorder) to(status int, target string) string {
	return fmt.Sprintf("%s/to?status=%d&url=%s", rec.URL, status, url.QueryEscape(target))
}

func (rec *recorder) all() []seen {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.seen
}

func TestReadFollowsRedirects(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{"GET", "HEAD"} {
			a, b := newRecorder(t), newRecorder(t)
			got, err := call(t, c, newRequest(t, method, a.to(status, b.URL+"/end"), ""))
			if err != nil || got.status != 200 || got.url != b.URL+"/end" {
				t.Errorf("%d %s: %v", status, method, err)
			}
			if got := b.all(); len(got) != 1 || got[0].method != method || "http://"+got[0].host != b.URL {
				t.Errorf("%d %s: the target saw %v", status, method, got)
			}
			if got, err := call(t, c, newRequest(t, method, a.to(status, "/relative"), "")); err != nil || got.status != 200 {
				t.Errorf("%d %s: relative: %v", status, method, err)
			}
		}
	}
}

func TestRedirectToAnotherOriginCarriesNoSecret(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	a, b := newRecorder(t), newRecorder(t)
	req := newRequest(t, "GET", a.to(302, b.to(302, a.URL+"/back")), "")
	secret := []string{"Authorization", "Cookie", "X-Api-Key", "Idempotency-Key", "X-Whatever", "Referer"}
	for _, name := range secret {
		req.Header.Set(name, "s3cret")
	}
	req.Header["lower-case-key"] = []string{"s3cret"}
	req.Header.Set("Accept", "text/csv")
	req.Host = "virtual.test"
	if _, err := call(t, c, req); err != nil {
		t.Fatal(err)
	}
	first, second, back := a.all()[0], b.all()[0], a.all()[1]
	if first.header.Get("X-Api-Key") != "s3cret" {
		t.Error("the first request lost its header")
	}
	for _, s := range []seen{second, back} { // what was dropped stays dropped
		if text := fmt.Sprint(s.header); strings.Contains(text, "s3cret") {
			t.Errorf("the target got %v", text)
		}
		if s.host == "virtual.test" {
			t.Error("the target got the Host of the first")
		}
		if s.header.Get("Accept") != "text/csv" || s.header.Get("User-Agent") != DefaultUserAgent {
			t.Errorf("harmless headers are lost: %v", s.header)
		}
	}
	if req.Header.Get("Authorization") != "s3cret" {
		t.Error("the caller's request was changed")
	}
}

func TestRedirectWithinTheOriginKeepsHeaders(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	a := newRecorder(t)
	req := newRequest(t, "GET", a.to(302, a.URL+"/end"), "")
	req.Header.Set("Authorization", "s3cret")
	req.Host = "virtual.test"
	if _, err := call(t, c, req); err != nil {
		t.Fatal(err)
	}
	if got := a.all()[1]; got.header.Get("Authorization") != "s3cret" || got.host != "virtual.test" {
		t.Errorf("saw %v", got)
	}
}

// A mutation is never turned into a GET: the 3xx is the answer.
func TestMutationIsNotRedirectedAsARead(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	for _, status := range []int{301, 302, 303} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			a := newRecorder(t)
			got, err := call(t, c, newRequest(t, method, a.to(status, a.URL+"/end"), "body"))
			if err != nil || got.status != status || len(a.all()) != 1 {
				t.Errorf("%d %s: %v, saw %v", status, method, err, a.all())
			}
		}
	}
}

func TestMutationIsResentWithinTheOriginOnly(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1", "127.0.0.2")
	for _, status := range []int{307, 308} {
		a, b := newRecorder(t), newRecorder(t)
		got, err := call(t, c, newRequest(t, "POST", a.to(status, "/end"), "body"))
		if err != nil || got.status != 200 {
			t.Fatalf("%d: %v", status, err)
		}
		if got := a.all(); len(got) != 2 || got[1].method != "POST" || got[1].body != "body" {
			t.Errorf("%d: saw %v", status, got)
		}
		_, err = call(t, c, newRequest(t, "POST", a.to(status, b.URL+"/end?k=s3cret"), "body"))
		e := mustFail(t, err, KindRedirect)
		if v := e.Verdict(Mutation); v != (Verdict{pawl.ClassLogic, NotHappened}) || e.Status != status || len(b.all()) != 0 {
			t.Errorf("%d: verdict %v, status %d, the other host saw %v", status, v, e.Status, b.all())
		}
		if strings.Contains(e.Error(), "s3cret") || !strings.Contains(e.Error(), "another host") {
			t.Errorf("message %q", e)
		}
	}
}

func TestBodyThatCannotBeReadAgainIsNotRedirected(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	a := newRecorder(t)
	req := newRequest(t, "POST", a.to(307, "/end"), "body")
	req.GetBody = nil
	_, err := call(t, c, req)
	wantKind(t, err, KindRedirect)
	if len(a.all()) != 1 {
		t.Errorf("saw %v", a.all())
	}
}

func TestReadWithABodyIsRedirectedLikeAMutation(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	a, b := newRecorder(t), newRecorder(t)
	if got, err := call(t, c, newRequest(t, "GET", a.to(302, b.URL), "body")); err != nil || got.status != 302 {
		t.Errorf("302: %v", err)
	}
	_, err := call(t, c, newRequest(t, "GET", a.to(307, b.URL), "body"))
	wantKind(t, err, KindRedirect)
	if len(b.all()) != 0 {
		t.Errorf("the other host saw %v", b.all())
	}
}

func TestRedirectToAPrivateAddressIsRefused(t *testing.T) {
	inside := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was called") })
	port := inside.URL[strings.LastIndexByte(inside.URL, ':'):]
	a := newRecorder(t)
	l127 := strings.TrimPrefix(a.URL, "http://")
	c := newTestClient(t, Config{}, "127.0.0.1")
	_, err := call(t, c, newRequest(t, "GET", a.to(302, "http://127.0.0.3"+port+"/?k=s3cret"), ""))
	e := mustFail(t, err, KindBlocked)
	want := "GET 127.0.0.3" + port + ": 127.0.0.3 is a loopback address (redirected from " + l127 + ")"
	if e.MaybeSent || e.Error() != want {
		t.Errorf("maybe sent %v, message %q, want %q", e.MaybeSent, e, want)
	}
	_, err = call(t, c, newRequest(t, "GET", a.to(302, "http://169.254.169.254/latest/meta-data"), ""))
	wantKind(t, err, KindBlocked)
}

func TestRedirectToAnUnsafeURLIsRefused(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	a := newRecorder(t)
	for _, target := range []string{
		"file:///etc/passwd", "gopher://127.0.0.1/s3cret", "http://u:s3cret@127.0.0.1/", "http://2130706433/",
		"http://0x7f.1/", "http:///s3cret", "http://[::1/s3cret", "http://127.0.0.1:0/", "javascript:s3cret", "http://127.0.0.1:x/s3cret",
	} {
		_, err := call(t, c, newRequest(t, "GET", a.to(302, target), ""))
		e := mustFail(t, err, KindRedirect)
		if e.Class != pawl.ClassLogic || e.Status != 302 || strings.Contains(e.Error(), "s3cret") {
			t.Errorf("%s: class %s, status %d, message %q", target, e.Class, e.Status, e)
		}
	}
}

func TestRedirectWithoutLocationIsTheAnswer(t *testing.T) {
	c := newTestClient(t, Config{}, "127.0.0.1")
	a := newRecorder(t)
	for _, status := range []int{302, 304} {
		if got, err := call(t, c, newRequest(t, "GET", a.to(status, ""), "")); err != nil || got.status != status {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestRedirectsAreLimited(t *testing.T) {
	for limit, want := range map[int]int{0: DefaultMaxRedirects + 1, 2: 3} {
		var calls int
		var mu sync.Mutex
		s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			w.Header().Set("Location", "/again")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		c := newTestClient(t, Config{MaxRedirects: limit}, "127.0.0.1")
		for _, method := range []string{"GET", "POST"} {
			calls = 0
			_, err := call(t, c, newRequest(t, method, s.URL, ""))
			e := mustFail(t, err, KindRedirect)
			if calls != want || e.Class != pawl.ClassLogic {
				t.Errorf("limit %d: %d calls, want %d; class %s", limit, calls, want, e.Class)
			}
		}
	}
	a := newRecorder(t)
	none := newTestClient(t, Config{MaxRedirects: -1}, "127.0.0.1")
	if got, err := call(t, none, newRequest(t, "GET", a.to(302, "/end"), "")); err != nil || got.status != 302 {
		t.Errorf("no redirects: %v", err)
	}
}

func TestRedirectFromHTTPSToHTTPIsRefused(t *testing.T) {
	plain := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the plain server was called") })
	safe := newTLSServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", plain.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	c := newTestClient(t, Config{RootCAs: trust(safe)}, "127.0.0.1")
	for _, method := range []string{"GET", "POST"} {
		_, err := call(t, c, newRequest(t, method, safe.URL, ""))
		if e := mustFail(t, err, KindRedirect); !strings.Contains(e.Error(), "from https to http") {
			t.Errorf("message %q", e)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"http://a.test/x", "http://a.test/y", true},
		{"http://a.test", "http://A.TEST:80", true},
		{"https://a.test", "https://a.test:443", true},
		{"http://a.test", "https://a.test", true},
		{"http://a.test", "http://b.test", false},
		{"http://a.test", "http://sub.a.test", false},
		{"http://a.test", "http://a.test:8080", false},
		{"http://a.test:8080", "https://a.test", false},
		{"http://a.test", "https://a.test:8443", false},
		{"https://a.test", "http://a.test", false},
		{"https://a.test:80", "http://a.test:443", false},
	} {
		from, _ := url.Parse(c.from)
		to, _ := url.Parse(c.to)
		if got := sameOrigin(from, to); got != c.want {
			t.Errorf("%s to %s: got %v", c.from, c.to, got)
		}
	}
}
