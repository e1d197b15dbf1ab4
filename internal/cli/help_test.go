package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
)

func TestHelpListsEveryCommandOnStdout(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		r := run(t, args...)
		r.expect(t, pawl.ExitDone)
		for _, name := range []string{"demo", "serve", "get", "describe", "why", "next", "apply", "run", "pause", "resume", "cancel", "approve", "reject", "resolve", "connections", "skip", "publish", "reset", "backfill", "delete", "retry", "grant", "account", "token", "cron", "backup", "promote", "version", "completion"} {
			if !strings.Contains(r.stdout, "\n  "+name+" ") {
				t.Errorf("pawl %s does not list %s:\n%s", strings.Join(args, " "), name, r.stdout)
			}
		}
		if r.stderr != "" {
			t.Errorf("help talks on stderr: %s", r.stderr)
		}
	}
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	p, _, _ := call{}.process(t)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short help is empty or ends with a full stop: %q", c.CommandPath(), c.Short)
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if r := run(t, args...); r.code != pawl.ExitDone || !strings.Contains(r.stdout, "Usage:") {
			t.Errorf("%v: code %d:\n%s", args, r.code, r.stdout)
		}
		checkExample(t, c)
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(p))
}

// checkExample wants an example of the command, and in examples only commands
// and flags that exist.
func checkExample(t *testing.T, c *cobra.Command) {
	t.Helper()
	if !strings.Contains(c.Example, "  "+c.CommandPath()) && !strings.Contains(c.Example, "("+c.CommandPath()) {
		t.Errorf("%s: the help has no example of it: %q", c.CommandPath(), c.Example)
	}
	for line := range strings.Lines(c.Example) {
		_, call, found := strings.Cut(strings.TrimSuffix(line, "\n"), "pawl ")
		if !found || !strings.HasPrefix(line, "  pawl ") {
			continue
		}
		call, _, _ = strings.Cut(call, " -- ") // what follows is for another program
		words := strings.Fields(call)
		named, _, err := c.Root().Find(words)
		if err != nil || named == c.Root() {
			t.Errorf("%s: no such command in the example: %s", c.CommandPath(), line)
			continue
		}
		for _, word := range words {
			name, long := strings.CutPrefix(word, "--")
			name, _, _ = strings.Cut(name, "=")
			if long && named.Flags().Lookup(name) == nil {
				t.Errorf("%s: %s has no flag --%s: %s", c.CommandPath(), named.CommandPath(), name, line)
			}
		}
	}
}

func TestHelpOfServeNamesFlagVariableAndDefault(t *testing.T) {
	text := run(t, "serve", "--help").stdout
	for _, def := range serverSettings() {
		if !strings.Contains(text, "--"+def.flag+" ") || !strings.Contains(text, "["+def.env+"]") {
			t.Errorf("help lacks --%s or %s:\n%s", def.flag, def.env, text)
		}
	}
	for _, value := range []string{"default 127.0.0.1:7295", "default sqlite:.pawl/pawl.db", "default 8", "default 300s", "default 128MiB", "default api,worker"} {
		if !strings.Contains(text, value) {
			t.Errorf("help lacks %q:\n%s", value, text)
		}
	}
}

func TestCompletionIsPrintedForEveryShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := run(t, "completion", shell); r.code != pawl.ExitDone || !strings.Contains(r.stdout, "pawl") {
			t.Errorf("%s: code %d, %d bytes", shell, r.code, len(r.stdout))
		}
	}
	run(t, "completion", "fihs").expect(t, pawl.ExitUsage, "Did you mean fish?")
}

func TestCompletionProposesKinds(t *testing.T) {
	for command, want := range map[string]string{
		"get":      "workflows sources schedules lanes runs inputs outputs events partitions rows rejects slots grants accounts receipts backfills calendars versions approvals questions rules connections hooks deliveries jobs tasks tokens nodes",
		"describe": "workflows sources schedules runs inputs grants calendars connections jobs",
		"delete":   "workflows sources schedules calendars rules hooks jobs tasks tokens",
		"run":      "workflows sources schedules", "pause": "workflows sources schedules", "resume": "workflows sources schedules runs", "why": "workflows sources schedules",
		"retry": "slots jobs", "reset": "sources",
	} {
		r := run(t, "__complete", command, "")
		proposed, _, _ := strings.Cut(r.stdout, ":") // then comes how to go on
		if got := strings.Join(strings.Fields(proposed), " "); got != want {
			t.Errorf("completion of %s: %q, want %q", command, got, want)
		}
	}
}
