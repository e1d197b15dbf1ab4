package pawl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// toolbox is a PATH with stand-ins for what the script calls, so that nothing is
// installed. A C compiler is missing until apt-get has installed it.
func toolbox(t *testing.T, aptGet string) (env []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	stubs := map[string]string{
		"go":      `case "$*" in "env CC") echo fake-cc;; "env GOOS") echo linux;; esac`,
		"id":      `echo 0`,
		"sleep":   `echo slept >> "$BOX/log"`,
		"apt-get": `echo "$*" >> "$BOX/log"; ` + aptGet,
	}
	for _, name := range []string{"node", "npm", "python3", "mypy", "chromium", "promtool"} {
		stubs[name] = ":"
	}
	for name, body := range stubs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + dir + ":/usr/bin:/bin", "BOX=" + dir, "TMPDIR=" + dir, "PAWL_TEST_POSTGRES=postgres://nowhere"}, dir
}

func ensureTools(t *testing.T, env []string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "scripts/ensure-test-tools.sh")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const install = `case "$*" in *install*) printf '#!/bin/sh\n' > "$BOX/fake-cc"; chmod +x "$BOX/fake-cc";; esac`

// An apt that somebody else runs, such as that of unattended upgrades, is waited
// for.
func TestToolsWaitForAnotherApt(t *testing.T) {
	env, box := toolbox(t, `n=$(grep -c update "$BOX/log"); if [ "$n" -lt 3 ]; then echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7" >&2; exit 100; fi; `+install)
	said, err := ensureTools(t, env)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	log, _ := os.ReadFile(filepath.Join(box, "log"))
	if strings.Count(said, "another apt is at work") != 1 || strings.Count(string(log), "slept") != 2 || strings.Count(string(log), "install -y") != 1 || !strings.Contains(string(log), "DPkg::Lock::Timeout=600") {
		t.Errorf("said:\n%s\ndid:\n%s", said, log)
	}
}

func TestToolsGiveUpOnAFaultThatIsNoLock(t *testing.T) {
	env, box := toolbox(t, `case "$*" in *install*) echo "E: Unable to locate package gcc" >&2; exit 100;; esac`)
	said, err := ensureTools(t, env)
	log, _ := os.ReadFile(filepath.Join(box, "log"))
	if err == nil || !strings.Contains(said, "Unable to locate package gcc") || strings.Contains(string(log), "slept") {
		t.Errorf("%v, said:\n%s\ndid:\n%s", err, said, log)
	}
}

func TestToolsGiveUpOnALockThatStays(t *testing.T) {
	env, _ := toolbox(t, `echo "E: Could not get lock /var/lib/dpkg/lock-frontend" >&2; exit 100`)
	if said, err := ensureTools(t, env); err == nil || !strings.Contains(said, "another apt has its lock for 600 seconds") {
		t.Errorf("%v, said:\n%s", err, said)
	}
}

// Of two that are started at once, one installs.
func TestToolsAreInstalledOnce(t *testing.T) {
	env, box := toolbox(t, install)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if said, err := ensureTools(t, env); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
	wg.Wait()
	log, _ := os.ReadFile(filepath.Join(box, "log"))
	if n := strings.Count(string(log), "install -y"); n != 1 {
		t.Errorf("installed %d times:\n%s", n, log)
	}
}
