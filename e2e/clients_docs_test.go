package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// guide are the programs of docs/clients.md in a language: its worker, and all the rest
// as one program.
func guide(t *testing.T, language string) (application, worker string) {
	t.Helper()
	text, err := os.ReadFile("../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```"+language+"\n")[1:]
	if len(blocks) != 4 {
		t.Fatalf("found %d programs", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if strings.Contains(block, "Worker(") {
			worker = block
		} else {
			application += block
		}
	}
	return application, worker
}

// The programs of the guide of clients do what it says.
func TestGuideOfClientsRuns(t *testing.T) {
	t.Parallel()
	typescript := typescriptClient(t)
	for language, p := range map[string]struct {
		dir, extension string
		run            []string
	}{
		"ts":     {typescript, ".ts", []string{"node"}},
		"python": {t.TempDir(), ".py", []string{python(t)}},
	} {
		t.Run(language, func(t *testing.T) {
			database := pgtest.URL(t)
			s := serve(t, database)
			application, worker := guide(t, language)
			files := map[string]string{"application": application, "worker": worker}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(p.dir, name+p.extension), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			extension := p.extension
			if language == "ts" {
				node(t, p.dir, "node_modules/typescript/bin/tsc", "--target", "es2022", "--module", "nodenext", "--strict", "--types", "node", "application.ts", "worker.ts")
				extension = ".js"
			}
			client, err := filepath.Abs("../clients/python")
			if err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "PAWL_URL="+s.url, "PAWL_TOKEN="+s.token(), "SHOP_DATABASE="+shopRole(t, database), "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1")
			said := program(t, p.dir, env, p.run[0], append(p.run[1:], "application"+extension)...)
			if !strings.Contains(said, "pending") || !strings.Contains(said, "orders") {
				t.Errorf("it said %s", said)
			}
			cmd := exec.Command(p.run[0], append(p.run[1:], "worker"+extension)...)
			log := &logBuffer{}
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, env, log, log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			for _, who := range []string{"ada", "grace", "alan"} {
				s.eventually("a mail to "+who, func() bool { return strings.Contains(log.String(), " to "+who+"@example.com") })
			}
		})
	}
}
