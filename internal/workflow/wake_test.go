package workflow

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	pawl "github.com/pawlrun/pawl"
)

var wakeNow = time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)

// wake is what becomes of a wakeAt that a script returned at wakeNow.
func wake(t *testing.T, asked string) Prepared {
	t.Helper()
	text, err := json.Marshal(map[string]any{"reservations": []any{}, "wakeAt": asked})
	if err != nil {
		t.Fatal(err)
	}
	p, err := CheckPrepared(text, true, Consumer{Name: "c"}, wakeNow)
	if err != nil {
		t.Fatalf("%s: %v", asked, err)
	}
	return p
}

// the forms of ISO 8601.
func TestWakeAtIsReadInAnyForm(t *testing.T) {
	for asked, want := range map[string]string{
		"2026-03-28T13:00:00Z":                "2026-03-28T13:00:00.000Z",
		"2026-03-28T13:00:00.5Z":              "2026-03-28T13:00:00.500Z",
		"2026-03-28T13:00:00.123000Z":         "2026-03-28T13:00:00.123Z",
		"2026-03-28T13:00:00.123456789012Z":   "2026-03-28T13:00:00.124Z", // never earlier than asked
		"2026-03-28T13:00:00,5Z":              "2026-03-28T13:00:00.500Z",
		"2026-03-28t13:00:00z":                "2026-03-28T13:00:00.000Z",
		"2026-03-28T14:00:00+01:00":           "2026-03-28T13:00:00.000Z",
		"2026-03-28T14:00:00+0100":            "2026-03-28T13:00:00.000Z",
		"2026-03-28T14:00:00+01":              "2026-03-28T13:00:00.000Z",
		"2026-03-28T09:30:00.250-03:30":       "2026-03-28T13:00:00.250Z",
		"2026-03-28T13:00:00":                 "2026-03-28T13:00:00.000Z",
		"2026-03-28T13:00:00.75":              "2026-03-28T13:00:00.750Z",
		"2026-03-28T13:00Z":                   "2026-03-28T13:00:00.000Z",
		"2026-03-28T13:00":                    "2026-03-28T13:00:00.000Z",
		"2026-03-29":                          "2026-03-29T00:00:00.000Z",
		pawl.FormatTime(wakeNow.Add(WakeMin)): "2026-03-28T12:00:30.000Z",
		pawl.FormatTime(wakeNow.Add(WakeMax)): "2026-03-29T12:00:00.000Z",
	} {
		p := wake(t, asked)
		if p.WakeAt != want || p.WakeAtAsked != "" || pawl.FormatTime(p.Wake()) != want {
			t.Errorf("%s: %+v, want %s", asked, p, want)
		}
	}
}

// pulled to the nearest bound; text that is no time
// never wakes early. Either is marked.
func TestWakeAtOutOfBoundsIsClamped(t *testing.T) {
	const earliest, latest = "2026-03-28T12:00:30.000Z", "2026-03-29T12:00:00.000Z"
	for asked, want := range map[string]string{
		"2026-03-28T12:00:29.999Z": earliest,
		"2026-03-28T12:00:00Z":     earliest,
		"2020-01-01T00:00:00Z":     earliest,
		"0001-01-01":               earliest,
		"2026-03-29T12:00:00.001Z": latest,
		"9999-12-31T23:59:59Z":     latest,
		"":                         latest,
		"soon":                     latest,
		"tomorrow":                 latest,
		"2026-02-30T00:00:00Z":     latest,
		"2026-03-28T25:00:00Z":     latest,
		"1774699200000":            latest,
		"Sat Mar 28 2026":          latest,
		"+010000-01-01T00:00:00Z":  latest,
		"2026-03-28T13:00:00Zz":    latest,
	} {
		p := wake(t, asked)
		flag := asked
		if asked == "" {
			flag = `""`
		}
		if p.WakeAt != want || p.WakeAtAsked != flag {
			t.Errorf("%q: %+v, want %s", asked, p, want)
		}
	}
	if p := wake(t, strings.Repeat("é", 5000)); p.WakeAtAsked != strings.Repeat("é", 100) || p.WakeAt != latest {
		t.Errorf("a long text: %+v", p)
	}
}

// whatever is asked at whatever instant, the stored instant
// is within the bounds.
func TestWakeAtIsAlwaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "fraction")).UTC()
		asked := now.Add(time.Duration(rapid.Int64Range(-int64(2*WakeMax), int64(2*WakeMax)).Draw(t, "later")))
		at, asWritten := clampWake(asked.Format(time.RFC3339Nano), now)
		if at.Before(now.Add(WakeMin)) || at.After(now.Add(WakeMax)) || !at.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("at %s, asked for %s, got %s", now, asked, at)
		}
		if asWritten && (at.Before(asked) || at.Sub(asked) >= time.Millisecond) {
			t.Errorf("asked for %s, got %s", asked, at)
		}
	})
}

// without wakeAt there is none.
func TestNoWakeAtIsNone(t *testing.T) {
	for _, raw := range []string{`{"reservations":[]}`, `{"reservations":[],"wakeAt":null}`} {
		p, err := CheckPrepared(json.RawMessage(raw), true, Consumer{Name: "c"}, wakeNow)
		if err != nil || p.WakeAt != "" || p.WakeAtAsked != "" || !p.Wake().IsZero() {
			t.Errorf("%s: %+v %v", raw, p, err)
		}
	}
}
