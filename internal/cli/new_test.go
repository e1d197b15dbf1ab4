package cli

import (
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// What new writes is valid as it is, and the command that it names works.
func TestTemplatesAreValid(t *testing.T) {
	for _, tt := range definitionTemplates() {
		t.Run(tt.kind, func(t *testing.T) {
			c := call{dir: t.TempDir()}
			r := c.run(t, "new", tt.kind, "my-first")
			r.expect(t, pawl.ExitDone, "pawl apply -f my-first"+tt.suffix)
			if r.stdout != "my-first"+tt.suffix+"\n" {
				t.Errorf("stdout %q", r.stdout)
			}
			c.run(t, "validate", "my-first"+tt.suffix).expect(t, pawl.ExitDone)
			again := c.run(t, "new", tt.kind, "my-first")
			again.expect(t, pawl.ExitRefused, "is there already")
		})
	}
	c := call{dir: t.TempDir()}
	c.run(t, "new", "workflow", "greetings", "--dir", "definitions").expect(t, pawl.ExitDone, "definitions/greetings.workflow.ts")
	r := c.run(t, "test", filepath.Join("definitions", "greetings.workflow.ts"), "--event", `greetings.asked={"text": "hello"}`)
	r.expect(t, pawl.ExitDone)
	if !strings.Contains(r.stdout, "hello") {
		t.Errorf("the template did not see the event:\n%s", r.stdout)
	}
}

func TestNewRefusesWhatIsNoName(t *testing.T) {
	for _, name := range []string{"", ".", "../x", "a b", "Großes", "-x", "x-", strings.Repeat("x", 64), "NAME"} {
		run(t, "new", "source", "--", name).expect(t, pawl.ExitUsage, "is not a valid name")
	}
	run(t, "new", "schedul", "x").expect(t, pawl.ExitUsage, "Did you mean schedule?")
	run(t, "new", "grant", "x").expect(t, pawl.ExitUsage, "Kinds: workflow, source, schedule")
}
