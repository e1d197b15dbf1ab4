package moving

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/definition"
)

func options() Options {
	return Options{Zone: "Europe/Berlin", Home: "/srv/ada", Now: time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)}
}

// read reads the YAML back, as a program would.
func read(t *testing.T, r Result) (out []map[string]any) {
	t.Helper()
	docs, err := definition.Read("import.yaml", []byte(r.YAML()))
	if err != nil && len(r.Schedules) > 0 {
		t.Fatalf("%v\n%s", err, r.YAML())
	}
	for _, doc := range docs {
		var m map[string]any
		if err := json.Unmarshal(doc.JSON(), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func commandOf(m map[string]any) (out []string) {
	run, _ := m["run"].(map[string]any)
	list, _ := run["command"].([]any)
	for _, word := range list {
		out = append(out, fmt.Sprint(word))
	}
	return out
}

// Ten lines as they stand in crontabs.
const tenLines = `# m h dom mon dow command
MAILTO=ops@example.com
PATH="/usr/local/bin:/usr/bin:/bin"
0 3 * * * /usr/local/bin/backup --full
*/5 * * * * cd /srv/app && ./poll.sh >/dev/null 2>&1
15 4 1,15 * 5 /usr/bin/report --monthly
@daily /usr/bin/find /tmp -mtime +7 -delete
@reboot /usr/local/bin/warm-cache
30 2 * * 1-5 flock -n /var/lock/sync.lock rsync -a /a /b
0 9 * * MON echo "it's 100\% done: $(date +\%F)"
0 0 1 jan * mail -s "new year" ops%Happy%new year
SHELL=/bin/bash
CRON_TZ=America/New_York
45 16 * * * [ -x /opt/x ] && TOKEN=1 /opt/x/run.py --day "$(date)"
0 3 * * * /usr/local/bin/backup --other
`

func TestCrontab(t *testing.T) {
	r := Crontab(tenLines, options())
	docs := read(t, r)
	var names []string
	for _, d := range docs {
		names = append(names, d["name"].(string))
		if d["kind"] != "schedule" || d["concurrencyPolicy"] != "Allow" || d["run"].(map[string]any)["dir"] != "/srv/ada" {
			t.Errorf("%v", d)
		}
		if env := d["run"].(map[string]any)["env"].(map[string]any); env["PATH"] != "/usr/local/bin:/usr/bin:/bin" || len(env) != 1 {
			t.Errorf("env %v", env)
		}
	}
	want := []string{"poll", "report", "find", "rsync", "echo", "mail", "run"}
	if len(names) != 9 || !slices.Equal(names[1:8], want) || !strings.HasPrefix(names[0], "backup-") || !strings.HasPrefix(names[8], "backup-") || names[0] == names[8] {
		t.Errorf("names %v", names)
	}
	for i, c := range []struct {
		cron, zone string
		command    []string
	}{
		{"0 3 * * *", "Europe/Berlin", []string{"/bin/sh", "-c", "/usr/local/bin/backup --full"}},
		{"*/5 * * * *", "Europe/Berlin", []string{"/bin/sh", "-c", "cd /srv/app && ./poll.sh >/dev/null 2>&1"}},
		{"15 4 1,15 * 5", "Europe/Berlin", []string{"/bin/sh", "-c", "/usr/bin/report --monthly"}},
		{"@daily", "Europe/Berlin", []string{"/bin/sh", "-c", "/usr/bin/find /tmp -mtime +7 -delete"}},
		{"30 2 * * 1-5", "Europe/Berlin", []string{"/bin/sh", "-c", "flock -n /var/lock/sync.lock rsync -a /a /b"}},
		{"0 9 * * MON", "Europe/Berlin", []string{"/bin/sh", "-c", `echo "it's 100% done: $(date +%F)"`}},
		{"0 0 1 jan *", "Europe/Berlin", []string{"/bin/sh", "-c", `printf %s "$1" | "$0" -c "$2"`, "/bin/sh", "Happy\nnew year\n", `mail -s "new year" ops`}},
		{"45 16 * * *", "America/New_York", []string{"/bin/bash", "-c", `[ -x /opt/x ] && TOKEN=1 /opt/x/run.py --day "$(date)"`}},
	} {
		if d := docs[i]; d["cron"] != c.cron || d["timezone"] != c.zone || !slices.Equal(commandOf(d), c.command) {
			t.Errorf("line %d: %v", i, d)
		}
	}
	if len(r.Lost) != 1 || !strings.HasPrefix(r.Lost[0], "line 8: @reboot") || !strings.Contains(r.Lost[0], "no time of a clock") {
		t.Errorf("lost %q", r.Lost)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "line 2: MAILTO") || !strings.Contains(notes, "CRON_TZ=America/New_York") {
		t.Errorf("notes %q", notes)
	}
	// Either day matches, as in cron: the 15th, or a Friday.
	next := r.Schedules[2].Next(options().Now, 3)
	if next[0].Day() != 20 || next[1].Day() != 27 || next[2].Day() != 1 {
		t.Errorf("next %v", next)
	}
	if again := Crontab(tenLines, options()); again.YAML() != r.YAML() {
		t.Error("the names are not stable")
	}
}

// As in cron, each % but the first is the end of a line, and the last line is
// ended if it is not yet.
func TestCrontabInput(t *testing.T) {
	for line, want := range map[string]string{
		"0 0 * * * a%b":           "b\n",
		"0 0 * * * a%b,%%c?%":     "b,\n\nc?\n",
		`0 0 * * * a%50\% of b%%`: "50% of b\n\n",
		"0 0 * * * a%":            "",
	} {
		if command := commandOf(read(t, Crontab(line+"\n", options()))[0]); len(command) != 6 || command[4] != want {
			t.Errorf("%s: %q", line, command)
		}
	}
}

func TestSystemCrontab(t *testing.T) {
	o := options()
	o.System = true
	r := Crontab("17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n25 6 * * * root\n@weekly www-data /usr/bin/clean\n", o)
	docs := read(t, r)
	if len(docs) != 2 || docs[0]["name"] != "run-parts" || docs[0]["cron"] != "17 * * * *" || docs[1]["cron"] != "@weekly" || docs[0]["run"].(map[string]any)["dir"] != nil {
		t.Errorf("%v", docs)
	}
	if len(r.Lost) != 1 || !strings.Contains(r.Lost[0], "line 2") || !strings.Contains(fmt.Sprint(r.Schedules[1].Notes), "as the user www-data") {
		t.Errorf("%v, %v", r.Lost, r.Schedules)
	}
}

// What is wrong or hostile is told and never passed on as if it were right.
func TestBadCrontabs(t *testing.T) {
	for text, want := range map[string]string{
		"61 * * * * x\n":                           "61",
		"* * * * *\n":                              "too few fields",
		"hello\n":                                  "too few fields",
		"@every 5m x\n":                            "@every",
		"CRON_TZ=Mars/Olympus\n":                   "unknown time zone",
		"RANDOM_DELAY=soon\n":                      "not a number of minutes",
		"0~30 * * * * x\n":                         "~",
		"* * * * * " + strings.Repeat("x", 5):      "",
		"\x00\x01\xff * * * * x\n":                 "line 1",
		"A=${SECRET}\n0 0 * * * echo $A\n":         "",
		"0 0 * * * echo ${HOME}\n":                 "cannot have ${",
		"0 0 * * * echo \x00\n":                    "zero byte",
		"0 0 * * * echo \xff\n":                    "not UTF-8",
		strings.Repeat("*", 10_000) + " * * * * x": "bytes long",
	} {
		r := Crontab(text, options())
		switch {
		case want == "" && (len(r.Lost) != 0 || len(read(t, r)) != 1):
			t.Errorf("%.40q: %v", text, r.Lost)
		case want != "" && (len(r.Lost) != 1 || !strings.Contains(r.Lost[0], want) || len(r.Schedules) != 0 || len(r.Lost[0]) > 1000):
			t.Errorf("%.40q: %.300q", text, r.Lost)
		}
	}
	hostile := "0 0 * * * printf 'a: b\\n---\\nkind: executor' # \u2028 \x1b[2J\"}]\n0 0 * * * x\t\"y\": [\n"
	docs := read(t, Crontab(hostile, options()))
	if len(docs) != 2 || docs[0]["kind"] != "schedule" || !strings.Contains(commandOf(docs[0])[2], "\x1b[2J") || commandOf(docs[1])[2] != "x\t\"y\": [" {
		t.Errorf("%q", docs)
	}
}

// Ten thousand lines are ten thousand schedules; see the benchmark for how long it takes.
func TestManyLines(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "%d %d * * * /usr/local/bin/job --number %d\n", i%60, i%24, i)
	}
	r := Crontab(b.String(), options())
	text := r.YAML()
	names := map[string]bool{}
	for _, s := range r.Schedules {
		names[s.Name] = true
	}
	if len(names) != 10_000 || len(text) < 1_000_000 {
		t.Errorf("%d names, %d bytes", len(names), len(text))
	}
}

func BenchmarkCrontab(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d %d * * * /usr/local/bin/job --number %d\n", i%60, i%24, i)
	}
	for b.Loop() {
		r := Crontab(text.String(), options())
		r.YAML()
	}
}

func TestSystemd(t *testing.T) {
	timer := "[Unit]\nDescription=x\n[Timer]\nOnCalendar=Mon..Fri *-*-* 03:30:00\nOnCalendar=Sun 05:00 \nRandomizedDelaySec=1h 30min\nPersistent=true\n[Install]\nWantedBy=timers.target\n"
	service := "[Service]\nType=oneshot\nExecStart=-/usr/local/bin/backup --to \"/mnt/a b\" \\\n  --full\nWorkingDirectory=/var/lib/backup\nEnvironment=MODE=full \"NOTE=a b\"\nUser=backup\nRuntimeMaxSec=30min\n"
	r := Systemd([]Unit{{"backup.timer", timer}, {"backup.service", service}}, options())
	docs := read(t, r)
	if len(docs) != 1 || len(r.Lost) != 0 {
		t.Fatalf("%v, %v", docs, r.Lost)
	}
	d, run := docs[0], docs[0]["run"].(map[string]any)
	if d["name"] != "backup" || fmt.Sprint(d["cron"]) != "[30 3 * * 1-5 0 5 * * 0]" || d["jitter"] != "1h30m" || fmt.Sprint(d["missed"]) != "map[policy:last]" || d["concurrencyPolicy"] != "Forbid" ||
		!slices.Equal(commandOf(d), []string{"/usr/local/bin/backup", "--to", "/mnt/a b", "--full"}) || run["dir"] != "/var/lib/backup" || run["timeout"] != "30m" || fmt.Sprint(run["env"]) != "map[MODE:full NOTE:a b]" {
		t.Errorf("%v", d)
	}
	if notes := fmt.Sprint(r.Schedules[0].Notes); !strings.Contains(notes, "User=backup") || !strings.Contains(notes, "exit code") {
		t.Errorf("%s", notes)
	}
	for text, want := range map[string]string{
		"daily": "0 0 * * *", "weekly": "0 0 * * 1", "*:0/15": "*/15 * * * *", "*-*-1..7 4:00": "0 4 1-7 * *", "Sat..Mon 10:00": "0 10 * * 6-7,0-1", "*-01,07-01 00:00:00": "0 0 1 1,7 *",
		"Mon,Wed *-*-* 9:30": "30 9 * * 1,3", "quarterly": "0 0 1 1,4,7,10 *", "*-*-* *:05": "5 * * * *", "12..14:10": "10 12-14 * * *",
	} {
		if got, _, err := calendarToCron(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	if got, zone, err := calendarToCron("*-*-* 02:00:00 Europe/Berlin"); err != nil || got != "0 2 * * *" || zone != "Europe/Berlin" {
		t.Errorf("%s %s %v", got, zone, err)
	}
	for _, text := range []string{"2026-12-24 18:00", "*-*~1 00:00", "*:*:0/10", "Fri *-*-13 09:00", "someday", "*-13-01", "25:00", "Xyz 10:00", "5/0:00"} {
		if got, _, err := calendarToCron(text); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, units := range [][]Unit{
		{{"a.timer", "[Timer]\nOnBootSec=5min\n"}, {"a.service", service}},
		{{"a.timer", "[Timer]\nOnCalendar=daily\n"}},
		{{"a.timer", "[Timer]\nOnCalendar=daily\n"}, {"a.service", "[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n"}},
		{{"a.timer", "[Timer]\nOnCalendar=daily\n"}, {"a.service", "[Service]\nExecStart=/bin/a %i\n"}},
		{{"a.socket", ""}}, {{"a.timer", ""}},
	} {
		if r := Systemd(units, options()); len(r.Lost) == 0 || len(r.Schedules) != 0 {
			t.Errorf("%v: %+v", units, r)
		}
	}
}

func TestTimersKeepTheirZonesAndTellWhatIsDropped(t *testing.T) {
	timer := "[Timer]\nOnCalendar=Mon 03:00 America/New_York\nOnCalendar=Tue 04:00 America/New_York\nOnCalendar=daily\nOnUnitActiveSec=1h\nWakeSystem=true\nAccuracySec=1s\n"
	service := "[Service]\nType=forking\nExecStart=/bin/a\nNice=10\nSuccessExitStatus=1\nStandardOutput=append:/var/log/a.log\n"
	r := Systemd([]Unit{{"a.timer", timer}, {"a.service", service}}, options())
	docs := read(t, r)
	if len(docs) != 1 || docs[0]["timezone"] != "America/New_York" || fmt.Sprint(docs[0]["cron"]) != "[0 3 * * 1 0 4 * * 2]" {
		t.Errorf("%v", docs)
	}
	if lost := fmt.Sprint(r.Lost); len(r.Lost) != 2 || !strings.Contains(lost, "OnCalendar=daily") || !strings.Contains(lost, "OnUnitActiveSec=1h") {
		t.Errorf("%s", lost)
	}
	notes := fmt.Sprint(r.Schedules[0].Notes)
	for _, want := range []string{"WakeSystem=true", "Type=forking", "Nice=10", "SuccessExitStatus=1", "StandardOutput=append:"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s is dropped without a word: %s", want, notes)
		}
	}
	if strings.Contains(notes, "AccuracySec") {
		t.Errorf("%s", notes)
	}
}

func TestContainersKeepWhatTheyNeedAndTellWhatIsDropped(t *testing.T) {
	manifest := `kind: CronJob
metadata: {name: a}
spec:
  schedule: "0 3 * * *"
  timeZone: UTC
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      backoffLimit: 0
      parallelism: 3
      template:
        spec:
          restartPolicy: Never
          securityContext: {}
          hostNetwork: true
          volumes: [{name: v}]
          containers:
          - image: x
            workingDir: /w
            resources: {limits: {memory: 1Gi}}
            args: ["--mode=$(MODE)", "--token=$(TOKEN)", "$(date)"]
            env: [{name: MODE, value: full}, {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]
            envFrom: [{secretRef: {name: s}}]
`
	r := Kubernetes(manifest, options())
	docs := read(t, r)
	if len(docs) != 1 || len(r.Lost) != 0 {
		t.Fatalf("%v, %v", docs, r.Lost)
	}
	if got := commandOf(docs[0]); !slices.Equal(got, []string{"docker", "run", "--rm", "-e", "MODE=full", "-e", "TOKEN", "-w", "/w", "x", "--mode=full", "--token=$(TOKEN)", "$(date)"}) {
		t.Errorf("%q", got)
	}
	if env := fmt.Sprint(docs[0]["run"].(map[string]any)["env"]); env != "map[TOKEN:${TOKEN}]" {
		t.Errorf("the command has the environment %s", env)
	}
	notes := fmt.Sprint(r.Schedules[0].Notes)
	for _, want := range []string{"parallelism of its job", "hostNetwork of its pod", "volumes of its pod", "resources of its container", "envFrom of its container", "$(TOKEN)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s is dropped without a word: %s", want, notes)
		}
	}
	for _, unwanted := range []string{"securityContext", "restartPolicy", "HistoryLimit", "$(date)"} {
		if strings.Contains(notes, unwanted) {
			t.Errorf("%s: %s", unwanted, notes)
		}
	}
}

func TestKubernetes(t *testing.T) {
	manifest := `apiVersion: batch/v1
kind: CronJob
metadata: {name: Nightly.Report}
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  suspend: true
  startingDeadlineSeconds: 600
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 1800
      template:
        spec:
          containers:
          - name: main
            image: ghcr.io/x/report:1
            command: [/bin/report, --all]
            args: ["--to", "a b"]
            env:
            - {name: MODE, value: full}
            - name: TOKEN
              valueFrom: {secretKeyRef: {name: s, key: k}}
---
kind: Service
---
kind: CronJob
metadata: {name: two}
spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {containers: [{image: a}, {image: b}]}}}}}
---
a: &x [1]
b: *x
`
	r := Kubernetes(manifest, options())
	docs := read(t, r)
	if len(docs) != 1 || len(r.Lost) != 4 {
		t.Fatalf("%v\n%q", docs, r.Lost)
	}
	d := docs[0]
	if d["name"] != "nightly.report" || d["cron"] != "0 3 * * *" || d["timezone"] != "Europe/Berlin" || d["concurrencyPolicy"] != "Forbid" || d["enabled"] != false || fmt.Sprint(d["missed"]) != "map[policy:last within:10m]" || fmt.Sprint(d["retry"]) != "map[attempts:3]" ||
		!slices.Equal(commandOf(d), []string{"docker", "run", "--rm", "-e", "MODE=full", "-e", "TOKEN", "--entrypoint", "/bin/report", "ghcr.io/x/report:1", "--all", "--to", "a b"}) || d["run"].(map[string]any)["timeout"] != "30m" {
		t.Errorf("%v", d)
	}
	if !strings.Contains(fmt.Sprint(r.Schedules[0].Notes), "TOKEN") {
		t.Errorf("%v", r.Schedules[0].Notes)
	}
	for _, text := range []string{"", "kind: [", strings.Repeat("[", 100_000), "kind: CronJob\n"} {
		if r := Kubernetes(text, options()); len(r.Schedules) != 0 || text != "" && len(r.Lost) == 0 {
			t.Errorf("%.20q: %+v", text, r)
		}
	}
}
