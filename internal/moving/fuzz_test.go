package moving_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/moving"
	"github.com/pawlrun/pawl/internal/schedule/spec"
)

// readable holds that what is written is read as it was meant.
func readable(t *testing.T, text string, r moving.Result) {
	t.Helper()
	if len(r.Schedules) == 0 {
		return
	}
	list, err := spec.Parse("out.yaml", []byte(r.YAML()))
	if err != nil {
		t.Fatalf("%q became what cannot be applied: %v\n%s", text, err, r.YAML())
	}
	if len(list) != len(r.Schedules) {
		t.Fatalf("%q became %d schedules, and %d are read:\n%s", text, len(r.Schedules), len(list), r.YAML())
	}
	seen := map[string]bool{}
	for i, s := range r.Schedules {
		if seen[s.Name] || list[i].Name != s.Name {
			t.Fatalf("%q has the name %q twice, or it is read as %q", text, s.Name, list[i].Name)
		}
		seen[s.Name] = true
		_ = s.Next(now, 3)
	}
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// FuzzCrontab: each line becomes a definition that can be applied, or is told as lost.
func FuzzCrontab(f *testing.F) {
	for _, text := range []string{
		"0 9 * * 1-5 /bin/backup --all\n", "@daily root /usr/bin/x\n", "MAILTO=a\nPATH=/bin\n*/5 * * * * a % b\\% c\n", "@reboot x\n", "60 * * * * x\n", "CRON_TZ=Europe/Berlin\n0 0 1 jan sun a 'b c' | d\n",
		"# c\n\n  \n0 0 * * *\n", "0 0 * * * \x00\xff\n", "0 0 * * * a\n0 0 * * * a\n", "0 0 * * * echo \"'\\: {}#\n",
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, system bool) {
		readable(t, text, moving.Crontab(text, moving.Options{System: system, Zone: "UTC", Home: "/srv/ada", Now: now}))
	})
}

// FuzzSystemd: the same for a timer and its service.
func FuzzSystemd(f *testing.F) {
	f.Add("[Timer]\nOnCalendar=daily\nPersistent=true\n", "[Service]\nExecStart=/bin/backup 'a b'\nEnvironment=A=b\nWorkingDirectory=/x\n")
	f.Add("[Timer]\nOnCalendar=Mon..Fri *-*-1..7 09:00/15:00 Europe/Berlin\nRandomizedDelaySec=5m\n", "[Service]\nExecStart=-/bin/x %i \"$A\"\n")
	f.Add("[Timer]\nOnUnitActiveSec=1h 30min\nOnBootSec=5\n", "[Service]\nUser=a\nTimeoutStartSec=infinity\nExecStart=a\nExecStart=b\n")
	f.Add("[Timer\nOnCalendar=*-*-* *:*:*\nUnit=x.service\n", "ExecStart=\\\n a\n")
	f.Fuzz(func(t *testing.T, timer, service string) {
		units := []moving.Unit{{Name: "x.timer", Text: timer}, {Name: "x.service", Text: service}}
		readable(t, timer+service, moving.Systemd(units, moving.Options{Zone: "UTC", Now: now}))
	})
}

// FuzzKubernetes: the same for CronJobs.
func FuzzKubernetes(f *testing.F) {
	const job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a, namespace: b}\nspec:\n  schedule: '*/5 * * * *'\n  concurrencyPolicy: Forbid\n  jobTemplate: {spec: {backoffLimit: 2, template: {spec: {containers: [{name: c, image: i, command: [a], args: [b], env: [{name: A, value: b}]}]}}}}\n"
	for _, text := range []string{job, job + "---\n" + job, "kind: List\nitems: []\n", "kind: CronJob\nspec: {schedule: 'TZ=Europe/Berlin @daily'}\n", "kind: CronJob\nmetadata: {name: \"\\u0000\"}\n", "a: &a [*a]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		readable(t, text, moving.Kubernetes(text, moving.Options{Zone: "UTC", Now: now}))
	})
}
