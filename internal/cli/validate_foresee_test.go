package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

const alwaysCalendar = "kind: calendar\nname: always\ndays: [\"0001-01-01/9999-12-31\"]\n"

func scheduleAt(when string) string {
	return "kind: schedule\nname: a\nrun: {url: \"https://example.com/\"}\n" + when + "\n"
}

func sourceAt(schedule string) string {
	return "kind: source\nname: a\nurl: https://example.com/a\ntable: a\nresponse: {fields: [{source: a, target: a, type: text}]}\nschedule: " + schedule + "\n"
}

func producerAt(schedule string) string {
	return strings.Replace(validScript("a"), `{ interval: "5m" }`, schedule, 1)
}

// What never runs is refused by validate with the sentence and the place of the server,
// also if it is the calendar of another file that leaves out everything.
func TestValidateRefusesWhatTheServerRefusesBecauseItNeverRuns(t *testing.T) {
	h := serve(t)
	defer h.end()
	token, err := os.ReadFile(filepath.Join(h.dir, ".pawl", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PAWL_URL": h.url, "PAWL_TOKEN": strings.TrimSpace(string(token))}
	now := regexp.MustCompile(`\(it is \S+ now\)`)
	for name, c := range map[string]struct{ file, text, want string }{
		"at":                {"a.yaml", scheduleAt(`at: "2020-01-01T00:00:00Z"`), `a.yaml:4:5: at it never runs: 2020-01-01T00:00:00Z is in the past (it is NOW)`},
		"until":             {"a.yaml", scheduleAt("cron: \"0 3 * * *\"\nuntil: \"2024-12-24\""), `a.yaml:5:8: until it never runs: nothing is left before 2024-12-24`},
		"interval":          {"a.yaml", scheduleAt("interval: 5m\nuntil: \"2024-12-24\""), `a.yaml:5:8: until it never runs: nothing is left before 2024-12-24`},
		"between":           {"a.yaml", scheduleAt("cron: \"0 9 * * *\"\nfrom: \"2999-01-02T10:00:00Z\"\nuntil: \"2999-01-03T08:00:00Z\""), `a.yaml:6:8: until it never runs: no slot is between`},
		"except":            {"a.yaml", scheduleAt("cron: \"0 3 * * *\"\nexcept: [\"0 3 * * *\"]"), `a.yaml:5:9: except it never runs: the exceptions leave out every slot`},
		"calendar":          {"a.yaml", scheduleAt("cron: \"0 3 * * *\"\nexcept: [\"calendar:always\"]"), `a.yaml:5:9: except it never runs: the exceptions leave out every slot`},
		"source":            {"a.yaml", sourceAt(`{cron: "0 3 * * *", until: "2024-12-24"}`), `a.yaml:6:38: schedule/until it never runs: nothing is left before 2024-12-24`},
		"source, fixed":     {"a.yaml", sourceAt(`{interval: 5m, until: "2024-12-24", missed: {policy: all}}`), `a.yaml:6:33: schedule/until it never runs: nothing is left before 2024-12-24`},
		"source, calendar":  {"a.yaml", sourceAt(`{interval: 5m, except: ["calendar:always"]}`), `a.yaml:6:34: schedule/except it never runs: the exceptions leave out every instant`},
		"producer":          {"a.workflow.ts", producerAt(`{ interval: "5m", until: "2024-12-24" }`), `a.workflow.ts:6:71: producer "poll": schedule: it never runs: nothing is left before 2024-12-24`},
		"producer, fixed":   {"a.workflow.ts", producerAt(`{ interval: "5m", until: "2024-12-24", missed: { policy: "all" } }`), `a.workflow.ts:6:71: producer "poll": schedule: it never runs: nothing is left before 2024-12-24`},
		"producer, excepts": {"a.workflow.ts", producerAt(`{ interval: "5m", except: ["calendar:always"] }`), `a.workflow.ts:6:71: producer "poll": schedule: it never runs: the exceptions leave out every instant`},
	} {
		t.Run(name, func(t *testing.T) {
			call := call{dir: folder(t, map[string]string{c.file: c.text, "z.yaml": alwaysCalendar}), env: env}
			lineOf := func(r result) (last string) { // the server's summary comes first
				for line := range strings.Lines(r.stderr) {
					if strings.Contains(line, "it never runs") {
						last = now.ReplaceAllString(strings.TrimSpace(line), "(it is NOW)")
					}
				}
				return last
			}
			checked := call.run(t, "validate", c.file, "z.yaml")
			checked.expect(t, pawl.ExitFailed, "error: 1 of 2 definitions have errors")
			sent := call.run(t, "apply", "-f", c.file, "-f", "z.yaml")
			sent.expect(t, pawl.ExitFailed)
			if here, there := lineOf(checked), lineOf(sent); here != there || !strings.HasPrefix(here, c.want) {
				t.Errorf("validate says\n%s\nthe server says\n%s\nwant\n%s", checked.stderr, sent.stderr, c.want)
			}
		})
	}
}

// A calendar that no file has is one of the server, whose days are not known: validate
// does not guess. What is still to come is right.
func TestValidateForeseesOnlyWhatItKnows(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml":        scheduleAt("cron: \"0 3 * * *\"\nexcept: [\"calendar:always\"]\nuntil: \"2999-12-24\""),
		"b.yaml":        strings.Replace(sourceAt(`{interval: 5m, except: ["calendar:always"]}`), "name: a", "name: b", 1),
		"c.workflow.ts": producerAt(`{ interval: "5m", except: ["calendar:always"], jitter: "1m" }`),
		"d.yaml":        "kind: calendar\nname: always\ndays: [\"0001-13-01\"]\n",
	})
	call{dir: dir}.run(t, "validate", "a.yaml", "b.yaml", "c.workflow.ts").expect(t, pawl.ExitDone)
	call{dir: dir}.run(t, "validate", ".").expect(t, pawl.ExitFailed, "d.yaml:3:", "error: 1 of 4 definitions have errors")
}
