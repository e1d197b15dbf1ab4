package execprog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

// C-03, C-35: a program gets the key of its caller in a variable, if the
// definition says so, and never in what it reads.
func TestProgramGetsTheCallerKeyIfItAsks(t *testing.T) {
	const callerKey = "vk-31415926"
	key, err := runner.NewKey("TEAM_KEY", callerKey)
	if err != nil {
		t.Fatal(err)
	}
	for more, want := range map[string]string{"callerKey: true": callerKey, "callerKey: false": "", "env: {PAWL_CALLER_KEY: own}": "own"} {
		r := newRig(t, "cat > body\nprintf '%s' \"$PAWL_CALLER_KEY\" > told\nenv > all\necho '{\"ok\":true}'", more)
		run := poet()
		run.Caller = runner.Caller{AccountID: "b1", Key: key}
		if result, err := r.Run(t.Context(), run, r.emit); err != nil || !result.OK {
			t.Fatalf("%+v, %v", result, err)
		}
		files := map[string]string{}
		for _, name := range []string{"body", "told", "all"} {
			raw, err := os.ReadFile(filepath.Join(r.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(raw)
		}
		if files["told"] != want || strings.Contains(files["all"], callerKey) != (want == callerKey) {
			t.Errorf("%s: told %q", more, files["told"])
		}
		if !strings.Contains(files["body"], `"billingAccountId":"b1"`) || strings.Contains(files["body"]+string(r.remote()), callerKey) {
			t.Errorf("%s: %s", more, files["body"])
		}
	}
	s := settingsOf(t, t.TempDir(), "graphs: {poet: {command: [sh], callerKey: true, env: {PAWL_CALLER_KEY: x}}}")
	if _, ok := New(s); ok || !strings.Contains(s.Fields()[0].String(), "x.yaml:1:55: PAWL_CALLER_KEY is set by callerKey") {
		t.Errorf("%v", s.Fields())
	}
}
