package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

func TestCronAsJSONIsInstantsInUTC(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"zone": {[]string{"0 9 * * 1-5", "--timezone", "Europe/Berlin", "--after", "2026-01-02T12:00:00Z", "--count", "2"},
			[]string{"2026-01-05T08:00:00.000Z", "2026-01-06T08:00:00.000Z"}},
		"gap": {[]string{"30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-03-28T12:00:00+01:00", "--count", "1"},
			[]string{"2026-03-29T01:00:00.000Z"}},
		"interval": {[]string{"90s", "--after", "2026-01-01T00:00:00.250Z", "--count", "2"},
			[]string{"2026-01-01T00:01:30.250Z", "2026-01-01T00:03:00.250Z"}},
		"words":           {[]string{"@daily", "--after", "2026-01-01", "--count", "1"}, []string{"2026-01-02T00:00:00.000Z"}},
		"many arguments":  {[]string{"0", "9", "1", "1", "0", "--after", "2026-01-01T10:00", "--count", "1"}, []string{"2026-01-04T09:00:00.000Z"}},
		"local after":     {[]string{"0 0 * * *", "--timezone", "America/New_York", "--after", "2026-06-01 00:00:00", "--count", "1"}, []string{"2026-06-02T04:00:00.000Z"}},
		"end of calendar": {[]string{"0 0 * * *", "--after", "9999-12-31T00:00:00Z"}, []string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, append(append([]string{"cron"}, tt.args...), "-o", "json")...)
			r.expect(t, pawl.ExitDone)
			var got map[string][]string
			if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string][]string{"next": tt.want}, got); diff != "" {
				t.Error(diff)
			}
			if r.stderr != "" {
				t.Errorf("talk: %s", r.stderr)
			}
		})
	}
}

func TestCronAsTableMarksClockChangesAndTalksOnStderr(t *testing.T) {
	r := run(t, "cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-03-28", "--count", "3")
	r.expect(t, pawl.ExitDone, "Daily at 02:30 Berlin time")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 4 {
		t.Fatalf("got:\n%s", r.stdout)
	}
	for i, want := range []string{"LOCAL", "Sat 2026-03-28 02:30:00 +01:00   2026-03-28T01:30:00.000Z", "Sun 2026-03-29 03:00:00 +02:00", "Mon 2026-03-30 02:30:00 +02:00"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if !strings.Contains(lines[2], "clocks go forward 1 h at 02:00") || strings.Contains(lines[1]+lines[3], "clocks") {
		t.Errorf("the wrong days are marked:\n%s", r.stdout)
	}
}

func TestCronSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"expression":          {[]string{"61 * * * *"}, pawl.ExitFailed, `minute "61"`},
		"interval":            {[]string{"90x"}, pawl.ExitFailed, "90x"},
		"zone":                {[]string{"0 0 * * *", "--timezone", "Europe/Berln"}, pawl.ExitFailed, "Europe/Berlin"},
		"zone of an interval": {[]string{"90s", "--timezone", "Europe/Berln"}, pawl.ExitFailed, "Europe/Berlin"},
		"after":               {[]string{"0 0 * * *", "--after", "soon"}, pawl.ExitUsage, `--after: "soon"`},
		"count":               {[]string{"0 0 * * *", "--count", "0"}, pawl.ExitUsage, "--count"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { run(t, append([]string{"cron"}, tt.args...)...).expect(t, tt.code, tt.says) })
	}
}
