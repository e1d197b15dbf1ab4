package pawl_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

// C-05, C-56, X-51: the key of a slot is the schedule and the instant in UTC,
// with milliseconds, whatever zone the instant was written in; another slot
// has another key.
func TestSlotKeyIsTheSameHoweverTheInstantIsWritten(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 29, 9, 0, 0, 0, berlin)
	want := "s1:2026-03-29T07:00:00.000Z"
	for _, same := range []time.Time{at, at.UTC(), at.Add(999 * time.Microsecond)} {
		if got := pawl.SlotKey("s1", same); got != want {
			t.Errorf("%v: %s, want %s", same, got, want)
		}
	}
	if pawl.SlotKey("s1", at.Add(time.Minute)) == want || pawl.SlotKey("s2", at) == want {
		t.Error("two slots share a key")
	}
}

// the phases of every kind of handler, in order, end in committed.
func TestPhasesEndInCommitted(t *testing.T) {
	for _, h := range []pawl.HandlerType{pawl.HandlerProducer, pawl.HandlerConsumer, pawl.HandlerSource, pawl.HandlerSchedule} {
		p := pawl.Phases(h)
		if len(p) < 2 || p[len(p)-1] != pawl.PhaseCommitted {
			t.Errorf("%s: %v", h, p)
		}
	}
	if pawl.Phases("odd") != nil {
		t.Error("an unknown handler has phases")
	}
}

func TestErrorsAreFoundByTheirCode(t *testing.T) {
	err := fmt.Errorf("load: %w", &pawl.Error{Code: pawl.CodeNotFound, Op: "get job", Msg: "there is no job 7", Err: errors.New("no row")})
	if !errors.Is(err, pawl.ErrNotFound) || errors.Is(err, pawl.ErrConflict) {
		t.Errorf("%v is not found by its code", err)
	}
	if err.Error() != "load: get job: there is no job 7: no row" {
		t.Errorf("said as %q", err)
	}
	if pawl.ErrorCode(errors.New("x")) != pawl.CodeInternal || pawl.ErrorCode(nil) != "" {
		t.Error("an error without a code must count as internal")
	}
}

// Every code has an HTTP status and an exit code of its own kind.
func TestCodesMapToStatusAndExit(t *testing.T) {
	for code, want := range map[pawl.Code][2]int{
		pawl.CodeInvalid:      {http.StatusUnprocessableEntity, pawl.ExitFailed},
		pawl.CodeUsage:        {http.StatusUnprocessableEntity, pawl.ExitUsage},
		pawl.CodeUnauthorized: {http.StatusUnauthorized, pawl.ExitNotAllowed},
		pawl.CodeForbidden:    {http.StatusForbidden, pawl.ExitNotAllowed},
		pawl.CodeNotFound:     {http.StatusNotFound, pawl.ExitNotFound},
		pawl.CodeConflict:     {http.StatusConflict, pawl.ExitRefused},
		pawl.CodeTooLarge:     {http.StatusRequestEntityTooLarge, pawl.ExitFailed},
		pawl.CodeUnavailable:  {http.StatusServiceUnavailable, pawl.ExitFailed},
		pawl.CodeUnreachable:  {http.StatusServiceUnavailable, pawl.ExitUnreachable},
		pawl.CodeInternal:     {http.StatusInternalServerError, pawl.ExitFailed},
		pawl.Code("odd"):      {http.StatusInternalServerError, pawl.ExitFailed},
	} {
		if code.HTTPStatus() != want[0] || code.ExitCode() != want[1] {
			t.Errorf("%s: status %d, exit %d, want %v", code, code.HTTPStatus(), code.ExitCode(), want)
		}
	}
}

// A fault is told after its place, as far as that is known.
func TestFaultsAreToldWithTheirPlace(t *testing.T) {
	for want, f := range map[string]pawl.Field{
		"wrong":          {Pointer: "/a", Message: "wrong"},
		"a.yaml: wrong":  {Place: pawl.Place{File: "a.yaml"}, Message: "wrong"},
		"a.yaml:3:7: no": {Place: pawl.Place{File: "a.yaml", Line: 3, Column: 7}, Pointer: "/a", Message: "no"},
	} {
		if got := f.String(); got != want {
			t.Errorf("told as %q, want %q", got, want)
		}
	}
}
