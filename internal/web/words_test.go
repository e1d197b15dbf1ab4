package web

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestMayFollowsScopesAndRoles(t *testing.T) {
	for _, c := range []struct {
		scopes         string
		role           userstore.Role
		resource, verb string
		want           bool
	}{
		{"*", userstore.RoleAdmin, "audit", "admin", true},
		{"*", userstore.RoleViewer, "runs", "write", false},
		{"*", userstore.RoleViewer, "runs", "read", true},
		{"read", userstore.RoleAdmin, "runs", "write", false},
		{"write", userstore.RoleOperator, "runs", "read", true},
		{"write", userstore.RoleOperator, "tokens", "admin", false},
		{"jobs:write", userstore.RoleOperator, "jobs", "read", true},
		{"jobs:write", userstore.RoleOperator, "runs", "read", false},
		{"jobs:none", userstore.RoleAdmin, "jobs", "read", false},
		{"", userstore.RoleAdmin, "jobs", "read", false},
		{"*", "nobody", "jobs", "read", false},
	} {
		token := userstore.Token{Scopes: strings.Fields(c.scopes), User: userstore.User{Role: c.role}}
		if got := may(&token, c.resource, c.verb); got != c.want {
			t.Errorf("%s of a %s for %s:%s: %v", c.scopes, c.role, c.resource, c.verb, got)
		}
	}
}

func TestTimesAreToldInWords(t *testing.T) {
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"never": {}, "just now": now, "in 5 min": now.Add(5 * time.Minute), "59 s ago": now.Add(-59 * time.Second),
		"59 min ago": now.Add(-time.Hour + time.Second), "47 h ago": now.Add(-47 * time.Hour), "2 d ago": now.Add(-48 * time.Hour),
	} {
		if got := ago(now, at); got != want {
			t.Errorf("ago(%v) is %q, want %q", at, got, want)
		}
	}
	for want, d := range map[string]time.Duration{"0 ms": 0, "999 ms": 999 * time.Millisecond, "1.5 s": 1500 * time.Millisecond, "2 min": 2 * time.Minute} {
		if got := took(now, now, now.Add(d)); got != want && d > 0 {
			t.Errorf("took %v is %q, want %q", d, got, want)
		}
	}
	for want, at := range map[string]time.Time{"Thu 31 Jan 2030 10:00": now, "Thu 31 Jan 2030 10:00:02": now.Add(2 * time.Second), "Thu 31 Jan 2030 10:01:00": now.Add(time.Minute + time.Millisecond)} {
		if got := inZone(at, "Europe/Berlin"); got != want {
			t.Errorf("inZone(%v) is %q, want %q", at, got, want)
		}
	}
	for want, n := range map[string]int{"0": 0, "999": 999, "1,000": 1000, "1,234,567": 1234567, "-1,000": -1000} {
		if got := number(n); got != want {
			t.Errorf("number(%d) is %q", n, got)
		}
	}
}

func TestDiffShowsWhatChanged(t *testing.T) {
	same := strings.Repeat("same\n", 10)
	for _, c := range []struct{ name, before, after, want string }{
		{"new", "", "a\nb\n", "+a +b"},
		{"changed", "a\nb\nc\n", "a\nB\nc\n", " a -b +B  c"},
		{"added", "a\nc\n", "a\nb\nc\n", " a +b  c"},
		{"moved", "a\nb\n", "b\na\n", "-a  b +a"},
		{"far", same + "x\n" + same, same + "y\n" + same, "…  same  same  same -x +y  same  same  same …"},
		{"nothing", "a\n", "a\n", "…"},
	} {
		var got []string
		for _, l := range diff(c.before, c.after) {
			got = append(got, l.Sign+l.Text)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
	long := strings.Repeat("a\n", 6000)
	if n := len(diff("x\n"+long+"y\n", "z\n"+strings.ReplaceAll(long, "a", "b")+"w\n")); n != 2*6000+4 {
		t.Errorf("a long one has %d lines", n)
	}
}

func TestJSONIsShownAsItIsSent(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":"\u003cb\u003e \u0026"}`: "{\n  \"a\": \"<b> &\"\n}",
		`"\\u003c"`:                    `"\\u003c"`,
		`"a\`:                          `"a\`,
		`"\u00"`:                       `"\u00"`,
		``:                             ``,
	} {
		if got := pretty([]byte(raw)); got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
	}
	if got := pretty([]byte(`"` + strings.Repeat("ä", maxPretty) + `"`)); len(got) > maxPretty+20 || !strings.HasSuffix(got, "(cut)") {
		t.Errorf("%d bytes are shown", len(got))
	}
}

// A run that failed or waits stopped at its phase, and is not drawn as one that
// goes on there.
func TestPhasesTellWhereARunStopped(t *testing.T) {
	for status, want := range map[string]string{
		"active": "past here ahead", "failed:logic": "past stopped:bad ahead", "paused:approval": "past stopped:warn ahead", "crashed": "past stopped:bad ahead", "committed": "past past past",
	} {
		phase := "prepared"
		if status == "committed" {
			phase = "committed"
		}
		told := map[string]string{}
		for _, s := range steps("consumer", phase, status) {
			if told[s.Name] = s.State; s.State == "stopped" {
				told[s.Name] += ":" + s.Tone
			}
		}
		if got := told["preparing"] + " " + told["prepared"] + " " + told["mutating"]; got != want {
			t.Errorf("%s: %s, want %s", status, got, want)
		}
	}
}
