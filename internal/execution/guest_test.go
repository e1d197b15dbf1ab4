package execution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// welcome lets in guests by the words of a test, each a user of its own.
func welcome(k *kit, guests ...string) {
	k.s.admitted = func(_ context.Context, token string) (Guest, error) {
		switch {
		case slices.Contains(guests, token):
			return Guest{UserID: token, Actor: token + " (token 1)"}, nil
		case token == "poor":
			return Guest{}, &pawl.Error{Code: pawl.CodeForbidden, Msg: "the token may not"}
		}
		return Guest{}, &pawl.Error{Code: pawl.CodeUnauthorized, Msg: "the token is not known"}
	}
}

// the keys of slots, and those of each user, are spaces of their own:
// nobody answers, stops, answers for or learns of the run of somebody else by
// its key, and the executor is told different keys. Each run of a user leaves a
// line in the audit log, and so does each change to it.
func TestKeysOfGuestsMeetNobodyElses(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		welcome(k, "ada", "bob")
		server := serve(t, k)
		const runs, slot = "/api/internal/graphs/x:poet/runs", "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e:2030-01-01T09:00:00.000Z"
		body := func(input int) string {
			return fmt.Sprintf(`{"executionGrantId":%q,"input":%d,"runId":"mine","scheduleId":"s","scheduledFor":"2030-01-01T09:00:00.000Z"}`, k.grantID, input)
		}
		ids := map[any]string{}
		for i, who := range []string{"ada", "bob", token} { // a guest is there before the slot
			status, answer := call{runs, "Bearer " + who, slot, body(i)}.do(t, server)
			if status != 200 || ids[answer["runId"]] != "" {
				t.Fatalf("%s: %d %v", who, status, answer)
			}
			ids[answer["runId"]] = who
			if _, again := (call{runs, "Bearer " + who, slot, body(i)}).do(t, server); again["runId"] != answer["runId"] {
				t.Errorf("%s asked again: %v", who, again)
			}
		}
		if ids["mine"] != token {
			t.Errorf("only the service names runs: %v", ids)
		}
		keys := map[string]bool{}
		for _, r := range k.fake.asked() {
			if keys[r.Key] = true; (r.ScheduleID == "s") != (r.Key == slot) || r.ScheduledFor.IsZero() != (r.Key != slot) {
				t.Errorf("the executor was told %+v", r)
			}
		}
		if len(keys) != 3 || !keys[slot] {
			t.Errorf("the executor was told the keys %v", keys)
		}
		k.mustRun("call:1")
		for _, path := range []string{pathCancel, pathResume} {
			if status, answer := (call{path, "Bearer ada", "call:1", `"yes"`}).do(t, server); status != 404 {
				t.Errorf("%s of what is another's: %d %v", path, status, answer)
			}
		}
		if lines := k.audit(); !slices.Equal(lines, []string{"ada (token 1) graph.run", "bob (token 1) graph.run"}) {
			t.Errorf("the audit log has %v", lines)
		}
	})
}

// A guest's answer to a question and a guest's cancellation are in the audit log.
func TestWhatGuestsChangeIsInTheAuditLog(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		welcome(k, "ada")
		server := serve(t, k)
		k.fake.run = asks
		body := fmt.Sprintf(`{"executionGrantId":%q,"input":1}`, k.grantID)
		for _, c := range []call{
			{"/api/internal/graphs/x:poet/runs", "Bearer ada", "k", body},
			{pathResume, "Bearer ada", "k", `"yes"`},
			{pathResume, "Bearer ada", "k", `"yes"`}, // it arrived
			{"/api/internal/graphs/x:poet/runs", "Bearer ada", "other", body},
			{pathCancel, "Bearer ada", "other", ``},
		} {
			if status, answer := c.do(t, server); status != 200 {
				t.Fatalf("%+v: %d %v", c, status, answer)
			}
		}
		want := []string{"ada (token 1) graph.run", "ada (token 1) graph.answer", "ada (token 1) graph.run", "ada (token 1) graph.cancel"}
		if lines := k.audit(); !slices.Equal(lines, want) {
			t.Errorf("the audit log has %v", lines)
		}
	})
}

func (k *kit) audit() (lines []string) {
	k.t.Helper()
	entries, err := k.db.AuditLog(k.t.Context(), 0, 100)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		if !strings.HasPrefix(e.Subject, "run:") {
			continue
		}
		lines = append(lines, e.Actor+" "+e.Action)
	}
	return lines
}

// A key that does not fit into its space is still one key.
func TestLongKeysOfGuestsStayApart(t *testing.T) {
	ada := Guest{UserID: "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e", Actor: "ada"}
	long := strings.Repeat("k", 254)
	seen := map[string]bool{}
	for _, key := range []string{"k", long + "a", long + "b"} {
		got := ada.key(key)
		if len(got) > 255 || seen[got] || got != ada.key(key) || !strings.HasPrefix(got, "user:"+ada.UserID+":") {
			t.Errorf("%s is %s", key, got)
		}
		seen[got] = true
	}
}

// P1 12: who has neither the service token nor a token of this server that may
// is refused, whatever the header looks like.
func TestGuestsAreLetInByOneToken(t *testing.T) {
	k := newKit(t, "sqlite:"+t.TempDir()+"/pawl.db")
	welcome(k, "ada")
	handler := k.s.Handler(token)
	for _, c := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"a guest", []string{"Bearer ada"}, 404},
		{"in small letters", []string{"bearer ada"}, 404},
		{"a token that may not", []string{"Bearer poor"}, 403},
		{"unknown", []string{"Bearer eve"}, 401},
		{"nothing", nil, 401},
		{"no token", []string{"Bearer "}, 401},
		{"another scheme", []string{"Basic ada"}, 401},
		{"twice", []string{"Bearer ada", "Bearer ada"}, 401},
		{"too long", []string{"Bearer " + strings.Repeat("a", 257)}, 401},
		{"a header too long", []string{"Bearer" + strings.Repeat(" ", 600) + "ada"}, 401},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, pathOutcome, nil)
		r.Header["Authorization"] = c.headers
		r.Header.Set("Idempotency-Key", "unknown")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if challenged := w.Header().Get("WWW-Authenticate") == "Bearer"; challenged != (c.status == 401) {
			t.Errorf("%s: challenged %v", c.name, challenged)
		}
	}
}

// Lesson 55: what went wrong inside is for the log, and a caller that gave up
// is told that the run goes on.
func TestProblemsOfTheInside(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		detail string
	}{
		"left":     {context.Canceled, 503, "the request was cancelled; the run continues"},
		"too long": {fmt.Errorf("wait: %w", context.DeadlineExceeded), 503, "the request was cancelled; the run continues"},
		"unknown":  {errors.New("password=hunter2"), 500, "internal error"},
		"internal": {&pawl.Error{Code: pawl.CodeInternal, Msg: "password=hunter2", Reason: "x"}, 500, "internal error"},
	} {
		p := problemOf(c.err)
		if p.Status != c.status || p.Detail != c.detail || p.Status == 500 && p.Code != "internal" {
			t.Errorf("%s: %+v", name, p)
		}
		w := httptest.NewRecorder()
		(&Service{log: discard()}).respond(w, nil, c.err)
		if again := w.Header().Get("Retry-After") == "1"; again != (c.status == 503) || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: %v %s", name, w.Header(), w.Body)
		}
	}
	w := httptest.NewRecorder()
	(&Service{log: discard()}).respond(w, nil, &InProgressError{RunID: "r"})
	if w.Code != 409 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("in progress: %d %v", w.Code, w.Header())
	}
}

// A run that is over is forgotten, here and in the claims; a service that was
// given no keys has none.
func TestRunsThatAreOverAreForgotten(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i := range 3 {
			k.mustRun(fmt.Sprint("k", i))
		}
		k.eventually("no flight is left", func() bool {
			k.s.mu.Lock()
			defer k.s.mu.Unlock()
			return len(k.s.flights) == 0
		})
		bare, err := New(Config{DB: k.db, Graphs: k.fake, Node: "bare"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bare.keyOf(grantstore.Account{ID: "a", KeyRef: "${K}"}); !errors.Is(err, errNoKeys) {
			t.Errorf("%v", err)
		}
	})
}
