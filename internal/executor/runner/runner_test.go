package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// surface, Executor: what a graph is told.
func TestBodyTellsTheRun(t *testing.T) {
	r := Run{RunID: "r1", Attempt: 2, ScheduleID: "s1", ScheduledFor: time.Date(2026, 3, 1, 9, 0, 0, 0, time.FixedZone("", 3600)), GraphID: "http:poet", Name: "poet", Input: json.RawMessage(`{"a":1}`), Key: "k"}
	raw, err := Body(r)
	if want := `{"runId":"r1","attempt":2,"scheduleId":"s1","scheduledFor":"2026-03-01T08:00:00.000Z","graphId":"http:poet","input":{"a":1}}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
	raw, err = Body(Run{RunID: "r1", Attempt: 1, GraphID: "http:poet", Resume: json.RawMessage(`true`)})
	if want := `{"runId":"r1","attempt":1,"graphId":"http:poet","input":null,"resume":true}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
	r = Run{RunID: "r1", Attempt: 1, GraphID: "http:poet", Caller: Caller{AccountID: "b1", Key: testKey(t)}} // C-35
	if raw, err := Body(r); err != nil || string(raw) != `{"runId":"r1","attempt":1,"graphId":"http:poet","billingAccountId":"b1","input":null}` {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := Body(Run{Input: json.RawMessage(`{`)}); err == nil {
		t.Error("an input that is not JSON was sent")
	}
}

func TestAnswersAreRead(t *testing.T) {
	failed := func(code, message string, retry bool) Result {
		return Result{Code: code, Message: message, Retry: retry}
	}
	for answer, want := range map[string]Result{
		`{"ok":true}`: {OK: true},
		`{"ok":true,"output":{"a":[1]},"traceId":"t"}`:                          {OK: true, Output: json.RawMessage(`{"a":[1]}`), TraceID: "t"},
		`{"ok":true,"output":1,"traceId":7,"error":{"code":"x"}}`:               {OK: true, Output: json.RawMessage(`1`)},
		`{"ok":false,"interrupt":{"q":"?"}}`:                                    {Interrupt: json.RawMessage(`{"q":"?"}`)},
		`{"ok":true,"interrupt":null,"output":2}`:                               {OK: true, Output: json.RawMessage(`2`)},
		`{"ok":false,"error":{"code":"rate_limit","message":"no"}}`:             failed("rate_limit", "no", true),
		`{"ok":false,"error":{"code":"timeout","message":"no"}}`:                failed("timeout", "no", true),
		`{"ok":false,"error":{"code":"internal","message":"no"}}`:               failed("internal", "no", true),
		`{"ok":false,"error":{"code":"invalid_request","message":"a\nb"}}`:      failed("invalid_request", "a b", false),
		`{"ok":false,"error":{"code":"insufficient_credits","message":"poor"}}`: failed("insufficient_credits", "poor", false),
		`{"ok":false,"error":{"code":"grant_expired","message":"lies"}}`:        failed("internal", "lies", true),
		`{"ok":false,"error":{"code":"weird"}}`:                                 failed("internal", "the graph failed and did not say why", true),
		`{"ok":false,"error":"text"}`:                                           failed("internal", "the graph failed and did not say why", true),
		`{"ok":false}`:                                                          failed("internal", "the graph failed and did not say why", true),
	} {
		got, readable, err := ReadAnswer([]byte(answer), func(Event) error { return nil })
		if diff := cmp.Diff(want, got); diff != "" || !readable || err != nil {
			t.Errorf("%s: readable %v, %v, %s", answer, readable, err, diff)
		}
	}
	for _, answer := range []string{"", "null", "[]", "true", "{}", `{"ok":null}`, `{"ok":"true"}`, `{"ok":1}`, `{"ok":true`, "<html>"} {
		if got, readable, err := ReadAnswer([]byte(answer), nil); readable || err != nil {
			t.Errorf("%s is read as %+v, %v", answer, got, err)
		}
	}
}

// context 3.19: what a run cost is told whole, and never fails the run.
func TestUsageIsTold(t *testing.T) {
	var usage []Usage
	var faults []string
	emit := func(e Event) error {
		if e.Kind == KindUsage {
			usage = append(usage, *e.Usage)
		} else {
			faults = append(faults, e.Text)
		}
		return nil
	}
	answer := `{"ok":true,"usage":[{"unit":"u1","model":"m","inputTokens":10,"outputTokens":2,"costUsd":0.00000011},{"costUsd":"0.5"},{},
		{"unit":3,"inputTokens":-1,"outputTokens":1.5,"costUsd":"a lot"},{"unit":"u5","costUsd":-1}]}`
	if got, readable, err := ReadAnswer([]byte(answer), emit); !got.OK || !readable || err != nil {
		t.Errorf("%+v, %v, %v", got, readable, err)
	}
	want := []Usage{{Unit: "u1", Model: "m", InputTokens: 10, OutputTokens: 2, Cost: 2, CostTold: true}, {Cost: 5_000_000, CostTold: true}, {}, {}, {Unit: "u5"}}
	if diff := cmp.Diff(want, usage); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"usage 4: inputTokens, outputTokens, costUsd cannot be read, and left out", "usage 5: costUsd cannot be read, and left out"}, faults); diff != "" {
		t.Error(diff)
	}
	for _, answer := range []string{`{"ok":true,"usage":{}}`, `{"ok":true,"usage":[1]}`} {
		faults = nil
		if got, _, err := ReadAnswer([]byte(answer), emit); !got.OK || err != nil || len(faults) != 1 {
			t.Errorf("%s: %+v, %v, %v", answer, got, err, faults)
		}
	}
	full := errors.New("the disk is full")
	if _, _, err := ReadAnswer([]byte(answer), func(Event) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}

// X-69, surface, Executor: the first start has the key of the run. What nobody
// answered is asked again under its own key, also by a later attempt; what the
// graph answered is over, and whatever follows has a key of its own.
func TestEveryCallHasItsKey(t *testing.T) {
	asks, fails, silence := Result{Interrupt: json.RawMessage("1")}, Failure(CodeInternal, "no"), Failure(CodeTimeout, "late")
	yes := json.RawMessage(`"yes"`)
	steps := []struct {
		name    string
		attempt int
		resume  json.RawMessage
		key     string
		carries string  // the answer of a person
		result  *Result // nil: the process died
		byGraph bool
	}{
		{"the first start", 1, nil, "k", "", nil, false},
		{"taken over", 1, nil, "k", "", &silence, false},
		{"after silence", 2, nil, "k", "", &asks, true},
		{"answered", 2, yes, "k:resume-1", `"yes"`, nil, false},
		{"the answer once more", 2, yes, "k:resume-1", `"yes"`, nil, false},
		{"taken over with the answer in hand", 2, nil, "k:resume-1", `"yes"`, &asks, true},
		{"another question", 2, yes, "k:resume-2", `"yes"`, &silence, false},
		{"a later attempt repeats the answer", 3, nil, "k:resume-2", `"yes"`, &fails, true},
		{"it failed: from the start", 4, nil, "k:attempt-4", "", nil, false},
		{"taken over", 4, nil, "k:attempt-4", "", &asks, true},
		{"asked again", 4, yes, "k:attempt-4:resume-1", `"yes"`, &fails, true},
		{"the next one", 5, nil, "k:attempt-5", "", &fails, true},
	}
	r := Run{Key: "k"}
	for _, step := range steps {
		r.Attempt, r.Resume = step.attempt, step.resume
		m, err := Remember(r)
		if err != nil {
			t.Fatal(err)
		}
		call := m.Next(r)
		if got := call.Key(r.Key); got != step.key || string(call.Resume) != step.carries {
			t.Errorf("%s: the key is %s with %s, want %s with %s", step.name, got, call.Resume, step.key, step.carries)
		}
		r.Remote = call.Event().Remote
		if step.result != nil {
			r.Remote = call.Answered(*step.result, step.byGraph).Remote
		}
	}
	if m, err := Remember(r); err != nil || m.State != StateOver || m.Resume != nil {
		t.Errorf("%+v, %v", m, err)
	}
	r.Remote = json.RawMessage(`[]`)
	if _, err := Remember(r); err == nil {
		t.Error("what cannot be read was forgotten")
	}
}

// Cancellation, timeout and the end of the process are told apart.
func TestEndsAreToldApart(t *testing.T) {
	var g Going
	r := Run{RunID: "r1", Timeout: time.Minute}
	stopping := errors.New("the process stops")
	synctest.Test(t, func(t *testing.T) {
		base, stop := context.WithCancelCause(t.Context())
		ctx, end := g.Begin(base, r)
		other, endOther := g.Begin(base, Run{RunID: "r2"})
		limited, cancel := Within(ctx, r, time.Hour)
		defer cancel()
		if _, ended, err := Ended(limited); ended || err != nil {
			t.Error("it ended early")
		}
		time.Sleep(59 * time.Second)
		if limited.Err() != nil {
			t.Error("it ended early")
		}
		time.Sleep(2 * time.Second)
		if result, ended, err := Ended(limited); result.Code != CodeTimeout || !result.Retry || !ended || err != nil {
			t.Errorf("%+v, %v, %v", result, ended, err)
		}
		g.Stop("r1")
		g.Stop("nobody")
		if result, ended, err := Ended(ctx); result.Code != CodeAborted || result.Retry || !ended || err != nil {
			t.Errorf("%+v, %v, %v", result, ended, err)
		}
		stop(stopping)
		if _, ended, err := Ended(other); !ended || !errors.Is(err, stopping) {
			t.Errorf("%v, %v", ended, err)
		}
		end()
		endOther()
		if len(g.stops) != 0 {
			t.Error("runs are kept for ever")
		}
		free, cancel := Within(t.Context(), Run{}, 0)
		defer cancel()
		if _, limited := free.Deadline(); limited {
			t.Error("there is a limit that nobody set")
		}
	})
}

func TestForeignTextFitsAMessage(t *testing.T) {
	if got := Excerpt(" a\x00\r\nb\xff "); got != "a b\uFFFD" {
		t.Errorf("%q", got)
	}
	if got := Excerpt(strings.Repeat("ä", 1001)); got != strings.Repeat("ä", 1000)+"..." {
		t.Errorf("%d", len(got))
	}
}
