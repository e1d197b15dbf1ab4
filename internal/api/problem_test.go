package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func TestUnknownRoutesAndMethodsAreProblems(t *testing.T) {
	both(t, func(r *rig) {
		for _, path := range []string{"/", "/nothing", "/api/v1", "/api/v1/jobs/", "/api/v1/jobs/1/nothing", "/healthz/x"} {
			r.do("GET", path, nil).problem(http.StatusNotFound, "not_found")
		}
		for _, c := range []struct{ method, path, allow string }{
			{"PUT", "/api/v1/jobs", "GET, POST"},
			{"PATCH", "/api/v1/jobs/1", "GET, DELETE"},
			{"GET", "/api/v1/jobs/1/retry", "POST"},
			{"DELETE", "/healthz", "GET"},
			{"OPTIONS", "/api/v1/jobs", "GET, POST"},
			{"NONSENSE", "/metrics", "GET"},
		} {
			p := r.do(c.method, c.path, nil)
			p.problem(http.StatusMethodNotAllowed, "method_not_allowed")
			if p.header.Get("Allow") != c.allow {
				t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, p.header.Get("Allow"), c.allow)
			}
		}
		r.as("", "GET", "/nothing", nil).problem(http.StatusUnauthorized, "unauthorized")
	})
}

func TestRequestIDs(t *testing.T) {
	both(t, func(r *rig) {
		if got := r.do("GET", "/api/v1/jobs", nil, "X-Request-Id", "abc-123.4:5/x_y").header.Get("X-Request-Id"); got != "abc-123.4:5/x_y" {
			t.Errorf("a good id became %q", got)
		}
		seen := map[string]bool{}
		for _, bad := range []string{"", "a b", "ä", "a\"b", "<x>", strings.Repeat("x", 129)} {
			got := r.do("GET", "/api/v1/jobs", nil, "X-Request-Id", bad).header.Get("X-Request-Id")
			if len(got) != 36 || seen[got] {
				t.Errorf("id %q for %q", got, bad)
			}
			seen[got] = true
		}
	})
}

func TestAnswersCarrySecurityHeaders(t *testing.T) {
	both(t, func(r *rig) {
		for _, op := range r.operations() {
			if op.path == "/api/v1/stream" {
				continue
			}
			for _, token := range []string{r.admin, ""} {
				h := r.as(token, op.method, op.target(), nil).header
				if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
					t.Errorf("%s %s: %v", op.method, op.path, h)
				}
			}
		}
	})
}

// TestErrorsBecomeProblems: each code has its status, and what has none is told
// to nobody but the log.
func TestErrorsBecomeProblems(t *testing.T) {
	secret := errors.New("password=hunter2")
	for _, c := range []struct {
		err    error
		status int
		code   string
		detail string
	}{
		{&pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no job 5", Err: secret}, 404, "not_found", "There is no job 5."},
		{fmt.Errorf("wrapped: %w", &pawl.Error{Code: pawl.CodeConflict, Msg: "it runs"}), 409, "conflict", "It runs."},
		{&pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database is busy", Err: secret}, 503, "unavailable", "The database is busy."},
		{&pawl.Error{Code: pawl.CodeLeaseLost, Msg: "another node owns this lane now"}, 503, "lease_lost", "Another node owns this lane now."},
		{&pawl.Error{Code: pawl.CodeInternal, Msg: "secret", Err: secret}, 500, "internal", "Internal error."},
		{&pawl.Error{Code: pawl.CodeSchema, Msg: "secret"}, 500, "internal", "Internal error."},
		{secret, 500, "internal", "Internal error."},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 503, "unavailable", "The request took too long and was given up."},
		{context.Canceled, 500, "internal", "Internal error."},
	} {
		p, _ := problemOf(t.Context(), c.err)
		if p.Status != c.status || p.Code != c.code || p.Detail != c.detail || strings.Contains(fmt.Sprint(p), "hunter2") {
			t.Errorf("%v became %+v", c.err, p)
		}
		if (p.Status == 503) != (p.header.Get("Retry-After") != "") {
			t.Errorf("%v: Retry-After %q", c.err, p.header.Get("Retry-After"))
		}
	}
}

// A handler that panics or fails is an internal error with the request's id;
// what it said is in the log only.
func TestFaultsOfOurOwnStayInTheLog(t *testing.T) {
	log := &logBook{}
	a := bareAPI(t, log)
	get := func(path string) client.Problem {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		return (&reply{t, w.Code, w.Result().Header, w.Body.Bytes()}).problem(500, "internal")
	}
	for _, path := range []string{"/panic", "/error"} {
		p := get(path)
		if strings.Contains(fmt.Sprint(p), "hunter2") || !strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), p.RequestID) {
			t.Errorf("%s: %+v; log %s", path, p, log)
		}
	}
	if !strings.Contains(log.String(), "problem_test.go") {
		t.Errorf("the log does not tell where it panicked: %s", log)
	}
}

// bareAPI has no database: it serves routes that fail.
func bareAPI(t *testing.T, log *logBook) *API {
	t.Helper()
	a := New(Config{Log: newLogger(log)})
	a.surface = newSurface(a.surface.shape) // of its own
	fail := func(path string, handler func(*API, context.Context, *struct{}) (*output[client.Health], error)) {
		add(a.surface, route{method: "GET", path: path, scope: open, id: path, summary: "x"}, handler)
	}
	fail("/panic", func(*API, context.Context, *struct{}) (*output[client.Health], error) { panic("hunter2") })
	fail("/error", func(*API, context.Context, *struct{}) (*output[client.Health], error) {
		return nil, errors.New("hunter2")
	})
	return a
}

func TestPointers(t *testing.T) {
	for location, want := range map[string]string{
		"body": "", "body.runAt": "/runAt", "body.items[3].tags[0]": "/items/3/tags/0", "query.limit": "/limit", "header.Idempotency-Key": "/Idempotency-Key",
		"body.a/b~c": "/a~1b~0c", "": "",
	} {
		if got := pointerOf(location); got != want {
			t.Errorf("%s became %q, want %q", location, got, want)
		}
	}
}

// What the schema of a request finds is told like everything else: the place, what
// must be there, and a hint where there is one.
func TestFaultsOfTheSchemaReadLikeOurs(t *testing.T) {
	both(t, func(r *rig) {
		const usual = "Correct what the errors point at"
		for _, c := range []struct {
			method, path string
			body         any
			want, hint   string
		}{
			{"GET", "/api/v1/jobs?limit=0", nil, "/limit must be at least 1", usual},
			{"GET", "/api/v1/jobs?limit=501", nil, "/limit must be at most 500", usual},
			{"GET", "/api/v1/jobs?limit=x", nil, "/limit must be a whole number", usual},
			{"GET", "/api/v1/jobs?state=schedule", nil, "/state must be one of scheduled, pending, running, failed, succeeded, cancelled", `Did you mean "scheduled"?`},
			{"GET", "/api/v1/jobs?state=xyzzy", nil, "/state must be one of scheduled, pending, running, failed, succeeded, cancelled", usual},
			{"GET", "/api/v1/jobs?stat=running", nil, "/stat is not a parameter of this request", "The parameters are "},
			{"POST", "/api/v1/jobs", map[string]any{}, "/task is required", usual},
			{"POST", "/api/v1/jobs", map[string]any{"task": ""}, "/task must have at least this many characters: 1", usual},
			{"POST", "/api/v1/jobs", map[string]any{"task": strings.Repeat("x", 257)}, "/task must have at most this many characters: 256", usual},
			{"POST", "/api/v1/jobs", map[string]any{"task": "echo", "runAt": "soon"}, "/runAt must be an RFC 3339 date-time", "Use RFC 3339 "},
			{"POST", "/api/v1/jobs", map[string]any{"task": "echo", "runat": 1}, "/runat is not a field of this request", `Did you mean "runAt"? `},
		} {
			p := r.do(c.method, c.path, c.body).problem(422, "invalid")
			if len(p.Errors) != 1 || p.Errors[0].Pointer+" "+p.Errors[0].Message != c.want || !strings.HasPrefix(string(p.Hint), c.hint) {
				t.Errorf("%s %s %v: %+v, hint %q; want %s, hint %q", c.method, c.path, c.body, p.Errors, p.Hint, c.want, c.hint)
			}
		}
	})
}

func TestUnknownStatusOfHumaIsInternal(t *testing.T) {
	p := (&surface{}).problemOfHuma(nil, &huma.ErrorModel{Status: 500, Detail: "cannot read request body"})
	if p.Code != "internal" || strings.Contains(p.Detail, "read") {
		t.Errorf("%+v", p)
	}
}

// What ends in a command can be typed as it stands.
func TestSentencesDoNotChangeCommands(t *testing.T) {
	for written, want := range map[string]string{
		"":                                    "",
		"it is paused":                        "It is paused.",
		"really?":                             "Really?",
		"pawl get workflows lists them.":      "pawl get workflows lists them.",
		"pawl approve 42":                     "pawl approve 42",
		"Resume it first: pawl resume w shop": "Resume it first: pawl resume w shop",
		"look there: at the shop":             "Look there: at the shop.",
		"prices.yaml:5:10: it is not known":   "prices.yaml:5:10: it is not known.",
		"subscribe: it is empty":              "Subscribe: it is empty.",
	} {
		if got := sentence(written); got != want {
			t.Errorf("%q becomes %q, want %q", written, got, want)
		}
	}
}

func TestNearestFindsSlips(t *testing.T) {
	choices := []string{"http", "log", "schedule"}
	for written, want := range map[string]string{
		"htpt": "http", "HTTP": "http", "lo": "log", "logs": "log", "shedule": "schedule", "something": "", "": "", "xyz": "",
	} {
		if got := pawl.Nearest(written, choices); got != want {
			t.Errorf("%q is near %q, want %q", written, got, want)
		}
	}
}

// A database that went away is told as such, without its address.
func TestDatabaseThatIsGoneIsUnavailable(t *testing.T) {
	both(t, func(r *rig) {
		_ = r.db.Close()
		p := r.do("GET", "/api/v1/jobs", nil)
		if p.status != http.StatusServiceUnavailable && p.status != http.StatusInternalServerError {
			t.Errorf("status %d: %s", p.status, p.body)
		}
		if strings.Contains(string(p.body), "127.0.0.1") || strings.Contains(string(p.body), ".db") {
			t.Errorf("tells too much: %s", p.body)
		}
		r.as("", "GET", "/healthz", nil).want(http.StatusOK)
	})
}

// A body that is none is the client's fault, and told so.
func TestBodyThatIsCutOffIsTheClientsFault(t *testing.T) {
	both(t, func(r *rig) {
		for _, body := range []string{"zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}{}{}\r\n0\r\n\r\n", "fffffffffffffffff\r\n{}"} {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			text := "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + r.admin + "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + body
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			_ = conn.Close()
			(&reply{t, resp.StatusCode, resp.Header, raw}).problem(http.StatusBadRequest, codeMalformed)
		}
	})
}
