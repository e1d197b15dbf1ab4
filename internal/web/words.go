package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/when"
)

// moment is an instant, of Go or of the API.
type moment interface{ UTC() time.Time }

// ago says how long ago an instant is, and how far ahead if it is to come.
func ago(now time.Time, at moment) string {
	d := now.Sub(at.UTC())
	switch {
	case at.UTC().IsZero():
		return "never"
	case d < -time.Second:
		return "in " + span(-d)
	case d < 2*time.Second:
		return "just now"
	}
	return span(d) + " ago"
}

// span is a length of time in one unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// until is the countdown to an instant, under a heading that says next.
func until(now time.Time, at moment) string {
	return strings.TrimPrefix(when.Until(now, at.UTC()), "Next ")
}

// took is how long something lasted; until now if it has not ended.
func took(now time.Time, from, to moment) string {
	begin, end := from.UTC(), to.UTC()
	if begin.IsZero() {
		return ""
	}
	if end.IsZero() {
		end = now
	}
	switch d := end.Sub(begin); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return span(d)
	}
}

// instant is a point in time for people; stamp is the same for programs.
func instant(at moment) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" }
func stamp(at moment) string   { return pawl.FormatTime(at.UTC()) }

// tone is the class of colours that a state has. The state is always written,
// too: the colour only repeats it.
func tone(state string) string {
	switch state {
	case "Running", "active", "running", "in_flight", "pending", "reserved", "waiting_fresh":
		return "run"
	case "Needs attention", "paused:approval", "paused:reconciliation", "failed:internal", "failed", "indeterminate", "needs_reconcile", "orphaned",
		"skipped_grant", "skipped_budget", "skipped_stale", "planned":
		return "warn"
	case "failed:logic", "crashed", "rejected", "expired", "revoked", "error", "refused":
		return "bad"
	case "Idle", "committed", "applied", "done", "succeeded", "consumed", "approved", "used", "activated", "success", "delivered":
		return "good"
	}
	return "rest" // Stopped, paused:transient, cancelled, skipped, scheduled
}

// sign is a shape that goes with a tone, for those who do not see colours.
func sign(tone string) string {
	switch tone {
	case "run":
		return "●"
	case "warn":
		return "▲"
	case "bad":
		return "✕"
	case "good":
		return "✓"
	}
	return "■"
}

// called is a state as people read it.
func called(state string) string {
	if text, ok := slotWords()[state]; ok {
		return text
	}
	switch state {
	case "paused:transient":
		return "retrying later"
	case "paused:approval":
		return "waiting for a person"
	case "paused:reconciliation":
		return "outcome unknown"
	case "failed:logic":
		return "script failed"
	case "failed:internal":
		return "internal error"
	case "in_flight":
		return "in progress"
	case "needs_reconcile":
		return "checking outcome"
	case "indeterminate":
		return "outcome unknown"
	case "applied":
		return "happened"
	case "committed":
		return "done"
	case "crashed":
		return "interrupted"
	case "orphaned":
		return "no outcome"
	}
	return state
}

// readTimes writes the instants in a sentence of another part as people read
// them.
func readTimes(text string) string {
	return exactInstant().ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return at.UTC().Format("2 Jan 15:04:05") + " UTC"
	})
}

//nolint:gochecknoglobals // compiled once
var exactInstant = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
})

// inZone is an instant on the clocks of a zone, with its seconds unless it is a whole
// minute; where the zone is not known it is UTC.
func inZone(at moment, zone string) string {
	where, err := time.LoadLocation(zone)
	if err != nil {
		where = time.UTC
	}
	layout := "Mon 2 Jan 2006 15:04"
	if local := at.UTC().In(where); local.Second() != 0 || local.Nanosecond() != 0 {
		layout += ":05" // several of a minute are told apart
	}
	return at.UTC().In(where).Format(layout)
}

// slotWords are what became of a slot of a schedule, and of a backfill.
func slotWords() map[string]string {
	return map[string]string{
		"success":          "done",
		"error":            "failed",
		"coalesced":        "merged into a later slot",
		"skipped_overlap":  "skipped: previous run active",
		"skipped_missed":   "missed: no server was running",
		"skipped_disabled": "skipped: disabled",
		"skipped_grant":    "skipped: not allowed",
		"skipped_budget":   "skipped: budget used up",
		"skipped_stale":    "skipped: a source was too old",
		"waiting_fresh":    "waiting for a source",
		"superseded":       "superseded by a change",
		"halted":           "missed: everything was halted",
		"planned":          "waiting for confirmation",
	}
}

// usd is an amount of money, with the decimals that it needs but at least two.
func usd(m pawl.USD) string {
	sign, text := "", m.String()
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "−", rest
	}
	whole, part, _ := strings.Cut(text, ".")
	for len(part) < 2 {
		part += "0"
	}
	return sign + "$" + whole + "." + part
}

// size is a number of bytes.
func size(n int64) string {
	switch {
	case n < 0:
		return "-" + size(-n)
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// given reports whether there is a JSON value, other than null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// maxPretty is how much of a JSON text is shown, in bytes.
const maxPretty = 64 << 10

// pretty is JSON with a line for each value.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		b.Reset()
		b.Write(raw)
	}
	text := readable(b.Bytes())
	if len(text) > maxPretty {
		return strings.ToValidUTF8(string(text[:maxPretty]), "") + "\n… (cut)"
	}
	return string(text)
}

// readable writes the characters that Go's encoder hides from browsers as what
// they are: the template hides them again, and people should see what is sent.
func readable(raw []byte) []byte {
	plain := map[string]byte{"u003c": '<', "u003e": '>', "u0026": '&'}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			continue
		}
		if c, ok := plain[string(raw[i+1:min(len(raw), i+6)])]; ok {
			out = append(out, c)
			i += 5
			continue
		}
		out = append(out, raw[i], raw[i+1]) // an escaped backslash hides nothing
		i++
	}
	return out
}

// short is the end of an id, which differs where its beginning is a time.
func short(id string) string {
	if len(id) <= 8 {
		return id
	}
	return id[len(id)-8:]
}

// gateName is a condition of running as people read it.
func gateName(name string) string {
	switch name {
	case "wanted", "enabled":
		return "enabled"
	case "idle", "in_flight":
		return "no active run"
	case "healthy":
		return "no unresolved run"
	case "due", "schedule":
		return "due"
	case "quota":
		return "quota left"
	case "retry":
		return "not backing off"
	case "grant":
		return "grant allows it"
	case "worker":
		return "worker available"
	case "halt":
		return "not halted"
	}
	return name
}

// waitingCount is how many decisions wait, as far as they are counted.
func waitingCount(n int) string {
	if n >= approvalsCounted {
		return strconv.Itoa(approvalsCounted-1) + "+"
	}
	return strconv.Itoa(n)
}

// whole is a whole number of any type, or what points to one.
func whole(n any) int64 {
	v := reflect.Indirect(reflect.ValueOf(n))
	if !v.CanInt() {
		return 0
	}
	return v.Int()
}

// number has a comma between thousands.
func number(n any) string {
	s := strconv.FormatInt(whole(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n any, one, many string) string {
	if whole(n) == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// actor is the user in how the audit log calls the holder of a token.
func actor(written string) string {
	if i := strings.LastIndex(written, " (token "); i > 0 {
		return written[:i]
	}
	return written
}

func pathSegment(s string) string { return url.PathEscape(s) }

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	s = string(unicode.ToUpper(r)) + s[size:]
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}
