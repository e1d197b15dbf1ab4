package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// C-87, lesson 57: what one side writes the other reads, whole.
func TestContractsSurviveTheWire(t *testing.T) {
	at := client.At(time.Date(2030, 1, 31, 9, 0, 0, 5e6, time.UTC))
	for _, value := range []any{
		RunRequestV1{ExecutionGrantID: "g", Input: json.RawMessage(`{"x":1}`), RunID: "r", Attempt: 2, ScheduleID: "s", ScheduledFor: at, Schedule: "n", Timezone: "UTC", Idempotent: true, Retries: true, Asked: true},
		RunAnswerV1{
			OK: true, RunID: "r", TraceID: "t", ErrorCode: Timeout, ErrorMessage: "m", Output: json.RawMessage(`[1]`), CostUSD: new(pawl.USD(12345)),
			Interrupt: json.RawMessage(`"?"`), QuestionID: "q", Attempt: 2, Unknown: true, Retry: true, RetryAfterMS: 1500,
		},
	} {
		t.Run(fmt.Sprintf("%T", value), func(t *testing.T) {
			everyFieldIsSet(t, reflect.ValueOf(value))
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(value))
			d := json.NewDecoder(strings.NewReader(string(raw)))
			d.DisallowUnknownFields()
			if err := d.Decode(back.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value, back.Elem().Interface()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// everyFieldIsSet keeps the test above honest when a field is added.
func everyFieldIsSet(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		if f := v.Field(i); f.IsZero() {
			t.Errorf("%s is not set in the test", v.Type().Field(i).Name)
		}
	}
}

// The names of fields are the contract (surface 4).
func TestAnswerHasItsFourFieldsAlways(t *testing.T) {
	raw, err := json.Marshal(RunAnswerV1{})
	if err != nil || string(raw) != `{"ok":false,"runId":"","traceId":"","errorCode":""}` {
		t.Errorf("%s %v", raw, err)
	}
}

func TestClosedSets(t *testing.T) { // C-85, X-62, surface 5
	for _, c := range []struct {
		name  string
		got   any
		want  string
		valid func(string) bool
	}{
		{"codes", ErrorCodes(), "[grant_not_found grant_expired grant_revoked grant_scope rate_limit timeout aborted insufficient_credits invalid_request not_found internal]", func(s string) bool { return ErrorCode(s).Valid() }},
		{"policies", pawl.ConcurrencyPolicies(), "[Queue Forbid Allow Replace]", func(s string) bool { return pawl.ConcurrencyPolicy(s).Valid() }},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
		for word := range strings.FieldsSeq(strings.Trim(c.want, "[]")) {
			if !c.valid(word) {
				t.Errorf("%s: %s is not valid", c.name, word)
			}
		}
		if c.valid("") || c.valid("other") {
			t.Errorf("%s: not closed", c.name)
		}
	}
}

func TestCodeOfAnyError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ErrorCode
	}{
		{nil, ""},
		{errors.New("x"), Internal},
		{fmt.Errorf("y: %w", &pawl.Error{Code: pawl.CodeForbidden, Reason: "grant_expired"}), GrantExpired},
		{&pawl.Error{Code: pawl.CodeInvalid}, InvalidRequest},
		{&pawl.Error{Code: pawl.CodeNotFound}, NotFound},
		{&pawl.Error{Code: pawl.CodeConflict, Reason: "in_progress"}, Internal},
		{&pawl.Error{Code: pawl.CodeUnavailable}, Internal},
		{context.DeadlineExceeded, Timeout},
		{context.Canceled, Aborted},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%v: %s", c.err, got)
		}
	}
}

func TestRequestTellsEveryFault(t *testing.T) { // C-31, context 3.17.1
	good := RunRequestV1{ExecutionGrantID: "g", Input: json.RawMessage(`null`)}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	bad := RunRequestV1{RunID: "a b", Attempt: -1, ScheduleID: strings.Repeat("x", 129), Input: json.RawMessage(`{`)}
	e, ok := errors.AsType[*pawl.Error](bad.Check())
	if !ok || e.Code != pawl.CodeInvalid {
		t.Fatalf("%v", e)
	}
	var places []string
	for _, f := range e.Fields {
		places = append(places, f.Pointer)
	}
	if got := strings.Join(places, " "); got != "/executionGrantId /input /runId /scheduleId /attempt" {
		t.Error(got)
	}
	if (RunRequestV1{ExecutionGrantID: "g"}).Check() == nil {
		t.Error("a request without input passed")
	}
}

func TestKeyIsPrintableAndBounded(t *testing.T) {
	for key, good := range map[string]bool{
		"s:2030-01-31T09:00:00.000Z": true, strings.Repeat("k", 255): true,
		"": false, strings.Repeat("k", 256): false, "a b": false, "ä": false, "a\x7f": false,
	} {
		if err := CheckKey(key); (err == nil) != good {
			t.Errorf("%q: %v", key, err)
		}
	}
}
