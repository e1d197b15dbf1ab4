package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// Definitions go to stdout, talk to stderr; what is lost is listed and makes the
// command fail, and what is not is written all the same.
func TestImport(t *testing.T) {
	c := call{env: map[string]string{"TZ": "Europe/Berlin", "HOME": "/srv/ada"}, stdin: "0 3 * * * /usr/bin/backup\nCRON_TZ=Asia/Tokyo\n0 9 * * * /usr/bin/report\n"}
	r := c.run(t, "import", "crontab", "-")
	r.expect(t, pawl.ExitDone, "line 1: backup runs next at ", "; so it does now", "line 3: report runs next at ", "; a cron that ignores CRON_TZ runs it at ", "2 schedules carried over, 0 not.")
	for _, want := range []string{"name: backup\n", `command: ["/bin/sh", "-c", "/usr/bin/backup"]`, `dir: "/srv/ada"`, `timezone: "Europe/Berlin"`, "\n---\n", `timezone: "Asia/Tokyo"`} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("lacks %q:\n%s", want, r.stdout)
		}
	}
	c.stdin = "CRON_TZ=Asia/Tokyo\n*/15 * * * * /usr/bin/poll\n"
	c.run(t, "import", "crontab", "-").expect(t, pawl.ExitDone, "line 2: poll runs next at ", "; so it does now")
	c.stdin = "@reboot /bin/x\n0 3 * * * /usr/bin/backup\n"
	if r := c.run(t, "import", "crontab", "-"); !strings.Contains(r.stdout, "name: backup") {
		t.Errorf("%s", r.stdout)
	} else {
		r.expect(t, pawl.ExitFailed, "not carried over: line 1: @reboot /bin/x", "no time of a clock", "1 could not be carried over")
	}
	c.stdin = "0 3 * * * root /usr/bin/backup\n"
	c.run(t, "import", "crontab", "--system", "--timezone", "UTC", "-").expect(t, pawl.ExitDone, "as the user root")
	c.run(t, "import", "crontab", "--timezone", "Mars/Olympus", "-").expect(t, pawl.ExitFailed, "unknown time zone")
	c.run(t, "import", "crontab", "missing").expect(t, pawl.ExitNotFound, "there is no missing")
	c.run(t, "import").expect(t, pawl.ExitUsage, "needs to know what to read")

	dir := t.TempDir()
	for name, text := range map[string]string{"a.timer": "[Timer]\nOnCalendar=daily Asia/Tokyo\n", "a.service": "[Service]\nExecStart=/bin/a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.run(t, "import", "systemd", filepath.Join(dir, "a.timer")); !strings.Contains(r.stdout, `command: ["/bin/a"]`) {
		t.Errorf("%s%s", r.stdout, r.stderr)
	} else {
		r.expect(t, pawl.ExitDone, "15:00:00.000Z; so it does now") // in that zone, as systemd has it
	}
	c.stdin = "kind: CronJob\nmetadata: {name: k}\nspec: {schedule: \"@daily\", jobTemplate: {spec: {template: {spec: {containers: [{image: a}]}}}}}\n"
	if r := c.run(t, "import", "kubernetes", "-"); r.code != pawl.ExitDone || !strings.Contains(r.stdout, `"docker", "run", "--rm", "a"`) {
		t.Errorf("%d %s%s", r.code, r.stdout, r.stderr)
	}
}
