package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

func TestBackupComesFromTheServerOrFromTheFile(t *testing.T) {
	h := serve(t)
	h.add(client.JobRequest{Task: "log", RunAt: pawl.FormatTime(time.Now().Add(time.Hour))})
	h.pawl("backup", "named.db").expect(t, pawl.ExitDone)
	h.env = map[string]string{} // the file says who has it
	r := h.pawl("backup", "found.db", "-o", "json")
	r.expect(t, pawl.ExitDone)
	var told struct{ Rows, Tables, Bytes int64 }
	if err := json.Unmarshal([]byte(r.stdout), &told); err != nil || told.Rows < 2 || told.Tables < 30 || told.Bytes < 4096 {
		t.Errorf("%s: %+v, %v", r.stdout, told, err)
	}
	h.end()
	r = h.pawl("backup", "offline.db")
	r.expect(t, pawl.ExitDone)
	if !strings.Contains(r.stdout, "rows of") || !strings.Contains(r.stdout, "checked") {
		t.Errorf("%s", r.stdout)
	}
	h.env["PAWL_URL"] = h.url // stopped, on this machine
	h.pawl("backup", "stopped.db").expect(t, pawl.ExitDone)

	var names []string
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".db") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
	if want := []string{".pawl", "found.db", "named.db", "offline.db", "stopped.db"}; !slices.Equal(names, want) {
		t.Errorf("the folder has %v", names)
	}
}

func TestBackupWritesOverNothingUnlessForced(t *testing.T) {
	dir := folder(t, map[string]string{"there.db": "precious", "sub/x": ""})
	c := call{dir: dir}
	c.run(t, "backup", "new.db").expect(t, pawl.ExitUnreachable) // neither a file nor a server
	if err := os.WriteFile(filepath.Join(dir, "pawl.yaml"), []byte("database: sqlite:there.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(t, "backup", "there.db", "--force").expect(t, pawl.ExitUsage, "the database itself")
	c.run(t, "backup", "sub").expect(t, pawl.ExitUsage, "is not a file")
	c.run(t, "backup", "copy.db").expect(t, pawl.ExitFailed) // no database
	if _, err := os.Stat(filepath.Join(dir, "copy.db")); err == nil {
		t.Error("a copy of what is no database was kept")
	}

	h := serve(t)
	if err := os.WriteFile(filepath.Join(h.dir, "there.db"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.pawl("backup", "there.db").expect(t, pawl.ExitRefused, "--force")
	if text, _ := os.ReadFile(filepath.Join(h.dir, "there.db")); string(text) != "precious" {
		t.Error("it was written over")
	}
	h.pawl("backup", "there.db", "--force").expect(t, pawl.ExitDone)
	h.pawl("backup").expect(t, pawl.ExitUsage)
	h.env["PAWL_TOKEN"] = "pawl_wrong"
	h.pawl("backup", "x.db").expect(t, pawl.ExitNotAllowed)
	h.end()
}

// The file of the lock says who has the database, and whoever wrote it is told no
// token of the user: only the token beside the database goes there, and only to
// this machine. A server that was named gets what the user named.
func TestBackupTellsNobodyATokenOfTheUser(t *testing.T) {
	h := serve(t)
	mine := "pawl_token_for_another_server"
	elsewhere := folder(t, map[string]string{".pawl/admin.token": mine + "\n", "mine.token": mine + "\n"})
	database := filepath.Join(h.dir, ".pawl", "pawl.db")
	for name, env := range map[string]map[string]string{
		"token": {"PAWL_TOKEN": mine}, "file": {"PAWL_TOKEN_FILE": filepath.Join(elsewhere, "mine.token")}, "folder": {},
	} {
		c := call{dir: elsewhere, env: env}
		c.run(t, "backup", name+".db", "--database", "sqlite:"+database).expect(t, pawl.ExitDone) // with the token beside the file
		c.run(t, "backup", name+"-named.db", "--server", h.url).expect(t, pawl.ExitNotAllowed)
	}
	h.end()
}

// A lock that names a server on another machine leads nowhere: nobody is asked,
// and the user is told who has the database.
func TestBackupAsksNobodyElsewhere(t *testing.T) {
	for name, addr := range map[string]string{"another machine": "192.0.2.1:7295", "a name": "db.example.com:7295"} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{".pawl/admin.token": "pawl_secret\n"})
			db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, ".pawl", "pawl.db"), store.Options{Holder: "pawl at " + addr + " (process 1)"})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close() //nolint:errcheck // a test
			call{dir: dir}.run(t, "backup", "copy.db").expect(t, pawl.ExitRefused, "in use by pawl at "+addr)
		})
	}
}

func TestBackupOfPostgresNamesTheToolWithoutThePassword(t *testing.T) {
	r := run(t, "backup", "x.db", "--database", "postgres://u:hunter2@127.0.0.1:1/db")
	r.expect(t, pawl.ExitFailed, "pg_dump --format=custom --file=pawl.dump postgres://127.0.0.1:1/db")
	if strings.Contains(r.stderr, "hunter2") {
		t.Errorf("the password is shown: %s", r.stderr)
	}
}

func TestPromoteIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	h := serve(t)
	const to = "postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1"
	h.pawl("promote", "--to", to).expect(t, pawl.ExitRefused, "in use by pawl at 127.0.0.1:", "Stop it first")
	h.end()
	if r := h.pawl("promote", "--to", to); r.code != pawl.ExitFailed || strings.Contains(r.stderr, "hunter2") {
		t.Errorf("%+v", r)
	}
	h.pawl("promote").expect(t, pawl.ExitUsage, "--to needs")
	h.pawl("promote", "--to", "sqlite:x.db").expect(t, pawl.ExitUsage)
	h.pawl("promote", "--undo", "--to", to).expect(t, pawl.ExitUsage)
	h.pawl("promote", "--undo").expect(t, pawl.ExitRefused, "not moved anywhere")
	h.pawl("promote", "--to", to, "--data", "elsewhere").expect(t, pawl.ExitNotFound, "no database at")
	h.pawl("promote", "--to", to, "--database", to).expect(t, pawl.ExitRefused, "not a SQLite file")
	if entries, _ := os.ReadDir(filepath.Join(h.dir, "elsewhere")); len(entries) > 0 {
		t.Error("a folder was made")
	}
}

func TestProgressIsShownOnATerminalAfterASecond(t *testing.T) {
	p, _, stderr := call{terminal: true}.process(t)
	l := progressLine{p: p}
	l.show("copied", 1, 10)
	if stderr.String() != "" {
		t.Errorf("at once: %q", stderr)
	}
	l.since = time.Now().Add(-2 * progressAfter)
	l.show("copied", 5, 10)
	if !strings.Contains(stderr.String(), "copied: 5 of 10 (50 %)") {
		t.Errorf("after a while: %q", stderr)
	}
	l.end()
	if !strings.HasSuffix(stderr.String(), "\r") {
		t.Errorf("at the end: %q", stderr)
	}
	quiet, _, talk := call{}.process(t)
	l = progressLine{p: quiet, since: time.Now().Add(-time.Hour)}
	l.show("copied", 5, 10)
	l.end()
	if talk.String() != "" {
		t.Errorf("without a terminal: %q", talk)
	}
}
