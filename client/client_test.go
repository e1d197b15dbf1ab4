package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

// serve starts a server for one test and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Config{URL: server.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestProblemsBecomeErrorsWithTheirCode(t *testing.T) {
	tests := map[string]struct {
		status int
		kind   string
		body   string
		code   pawl.Code
		exit   int
		says   string
	}{
		"not found":      {404, "application/problem+json", `{"code":"not_found","detail":"no job 7"}`, pawl.CodeNotFound, 3, "no job 7"},
		"conflict":       {409, "application/problem+json", `{"code":"run_active","detail":"it runs"}`, pawl.CodeConflict, 4, "it runs"},
		"no token":       {401, "application/problem+json; charset=utf-8", `{"code":"unauthorized","title":"Unauthorized"}`, pawl.CodeUnauthorized, 5, "Unauthorized"},
		"not allowed":    {403, "application/problem+json", `{"code":"forbidden","detail":"scope"}`, pawl.CodeForbidden, 5, "scope"},
		"invalid":        {422, "application/problem+json", `{"code":"invalid","detail":"bad"}`, pawl.CodeInvalid, 1, "bad"},
		"bad request":    {400, "application/problem+json", `{"detail":"bad"}`, pawl.CodeInvalid, 1, "bad"},
		"internal":       {500, "application/problem+json", `{"code":"internal","detail":"internal error","requestId":"r1"}`, pawl.CodeInternal, 1, "request r1"},
		"unavailable":    {503, "application/problem+json", `{"code":"unavailable","detail":"later"}`, pawl.CodeUnavailable, 1, "later"},
		"empty problem":  {404, "application/problem+json", `{}`, pawl.CodeNotFound, 3, "404"},
		"proxy":          {502, "text/html", `<html>`, pawl.CodeUnreachable, 6, "502"},
		"another server": {404, "text/html", `<html>`, pawl.CodeInternal, 1, "404 Not Found"},
		"broken problem": {404, "application/problem+json", `{`, pawl.CodeInternal, 1, "404"},
		"redirect":       {302, "text/html", ``, pawl.CodeInternal, 1, "302"},
		"not JSON":       {200, "text/html", `<html>`, pawl.CodeInternal, 1, "not JSON"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			})
			_, err := c.Get(t.Context(), "/x")
			if code := pawl.ErrorCode(err); code != tt.code || code.ExitCode() != tt.exit {
				t.Errorf("code %s, exit %d; want %s, %d", code, code.ExitCode(), tt.code, tt.exit)
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v lacks %q", err, tt.says)
			}
		})
	}
}

func TestProblemKeepsHintAndPlaces(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(422)
		_, _ = w.Write([]byte(`{"code":"invalid","detail":"bad","hint":"do so","errors":[{"pointer":"/runAt","message":"is not a time"}]}`))
	})
	_, err := c.Post(t.Context(), "/x", map[string]string{"a": "b"})
	want := &pawl.Error{Code: pawl.CodeInvalid, Msg: "bad", Hint: "do so", Fields: []pawl.Field{{Pointer: "/runAt", Message: "is not a time"}}}
	got, _ := errors.AsType[*pawl.Error](err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRequestCarriesTokenAndBody(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		_ = json.NewDecoder(r.Body).Decode(&body)
		_ = json.NewEncoder(w).Encode([]string{r.Method, r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body["a"]})
	})
	raw, err := c.Post(t.Context(), "/jobs/"+url.PathEscape("a/b c"), map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `["POST","/jobs/a%2Fb%20c","Bearer secret","application/json","b"]`; strings.TrimSpace(string(raw)) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
}

func TestRefusalKeepsItsReason(t *testing.T) {
	for code, want := range map[string]string{"run_active": "run_active", "conflict": ""} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(409)
			_, _ = fmt.Fprintf(w, `{"code":%q,"detail":"no"}`, code)
		})
		_, err := c.Post(t.Context(), "/x", nil)
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeConflict || e.Reason != want {
			t.Errorf("%s: %#v", code, err)
		}
	}
}

func TestParametersAndReplacementsAreSent(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode([]string{r.Method, r.URL.RequestURI()})
	})
	raw, err := c.GetWith(t.Context(), WhyPath("workflow", "a b"), url.Values{"at": {"x y"}})
	if want := `["GET","/api/v1/lanes/workflow/a%20b/why?at=x+y"]`; err != nil || strings.TrimSpace(string(raw)) != want {
		t.Errorf("%v, %s, want %s", err, raw, want)
	}
	raw, err = c.Put(t.Context(), WorkflowPath("a/b", "events"), ScriptRequest{})
	if want := `["PUT","/api/v1/workflows/a%2Fb/events"]`; err != nil || strings.TrimSpace(string(raw)) != want {
		t.Errorf("%v, %s, want %s", err, raw, want)
	}
}

func TestListGoesThroughPagesUpToItsLimit(t *testing.T) {
	const there = 450
	handler := func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		if r.URL.Query().Get("state") != "failed" || limit < 1 || limit > pageSize {
			http.Error(w, "unexpected query", http.StatusTeapot)
			return
		}
		page := struct {
			Items      []int  `json:"items"`
			NextCursor string `json:"nextCursor,omitempty"`
		}{Items: []int{}}
		for n := from; n < min(from+limit, there); n++ {
			page.Items = append(page.Items, n)
		}
		if from+limit < there {
			page.NextCursor = strconv.Itoa(from + limit)
		}
		_ = json.NewEncoder(w).Encode(page)
	}
	for _, tt := range []struct {
		limit, want int
		more        bool
	}{{0, there, false}, {10, 10, true}, {250, 250, true}, {there, there, false}, {there + 50, there, false}} {
		items, more, err := serve(t, handler).List(t.Context(), "/jobs", url.Values{"state": {"failed"}}, tt.limit)
		if err != nil || len(items) != tt.want || more != tt.more {
			t.Errorf("limit %d: %d items, more %t, %v; want %d, %t", tt.limit, len(items), more, err, tt.want, tt.more)
		}
		for i, raw := range items {
			if string(raw) != fmt.Sprint(i) {
				t.Fatalf("limit %d: item %d is %s", tt.limit, i, raw)
			}
		}
	}
}

func TestListThatGoesInCirclesEnds(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"items":[1],"nextCursor":"x"}`)) })
	if _, _, err := c.List(t.Context(), "/jobs", nil, 0); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}

func TestServerThatDoesNotAnswerIsUnreachable(t *testing.T) {
	for _, tt := range []struct{ url, hint string }{
		{"http://127.0.0.1:1", "Start it with: pawl serve"},
		{"http://0.0.0.0:1", "Set HERE."}, // not a loopback address, and nothing listens
	} {
		c, err := New(Config{URL: tt.url, Hints: Hints{Unreachable: "Set HERE."}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Get(t.Context(), "/x")
		e, _ := errors.AsType[*pawl.Error](err)
		if e == nil || e.Code != pawl.CodeUnreachable || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s: %#v", tt.url, e)
		}
	}
}

func TestInterruptedRequestIsNotUnreachable(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("a signal came"))
		<-r.Context().Done()
	})
	if _, err := c.Get(ctx, "/x"); !errors.Is(err, context.Canceled) || pawl.ErrorCode(err) == pawl.CodeUnreachable {
		t.Errorf("got %v", err)
	}
}

func TestAddressOfAServerMustBeAURL(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:7295", "ftp://x", "http://", "::"} {
		if _, err := New(Config{URL: text}); pawl.ErrorCode(err) != pawl.CodeUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}
