package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

type migrateAnswer struct {
	Database   string
	From, To   int
	DryRun     bool
	Migrations []store.Migration
}

func migrate(t *testing.T, c call, args ...string) (a migrateAnswer) {
	t.Helper()
	r := c.run(t, append([]string{"migrate", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &a); r.code != pawl.ExitDone || err != nil {
		t.Fatalf("%d, %v: %s%s", r.code, err, r.stdout, r.stderr)
	}
	return a
}

func TestMigrateShowsAndDoes(t *testing.T) {
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		_, newest := store.Schema()
		c := call{dir: t.TempDir()}
		if a := migrate(t, c, "--database", url, "--dry-run"); a.From != 0 || a.To != newest || !a.DryRun || len(a.Migrations) != newest || len(a.Migrations[0].Statements) == 0 {
			t.Errorf("an empty database: %+v", a)
		}
		r := c.run(t, "migrate", "--dry-run", "--database", url)
		if !strings.Contains(r.stdout, "0001_spine: ") || !strings.Contains(r.stdout, "\n  create table ") || !strings.Contains(r.stdout, "Nothing was changed.") {
			t.Errorf("%s", r.stdout)
		}
		if a := migrate(t, c, "--database", url); a.From != 0 || a.To != newest || a.DryRun || len(a.Migrations) != newest {
			t.Errorf("migrated: %+v", a)
		}
		if a := migrate(t, c, "--database", url); a.From != newest || a.To != newest || a.Migrations == nil || len(a.Migrations) != 0 {
			t.Errorf("migrated again: %+v", a)
		}
		if r := c.run(t, "migrate", "--database", url); !strings.Contains(r.stdout, "There is nothing to do.") || r.code != pawl.ExitDone {
			t.Errorf("%s", r.stdout)
		}
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into schema_migrations (version, name, applied_at) values (9000, 'future', 0)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		c.run(t, "migrate", "--database", url, "--dry-run").expect(t, pawl.ExitFailed, "schema version 9000", "Use the newer pawl")
		c.run(t, "migrate", "--database", url).expect(t, pawl.ExitFailed, "schema version 9000", "Nothing was changed")
	})
}

func TestMigrateBesideAServer(t *testing.T) {
	h := serve(t)
	defer h.end()
	h.pawl("migrate").expect(t, pawl.ExitRefused, "in use by pawl at 127.0.0.1:", "--dry-run works beside it")
	h.pawl("migrate", "--dry-run").expect(t, pawl.ExitDone)
}

func TestMigrateOfNothing(t *testing.T) {
	c := call{dir: t.TempDir()}
	c.run(t, "migrate", "--dry-run").expect(t, pawl.ExitDone)
	if entries, _ := os.ReadDir(c.dir); len(entries) != 0 {
		t.Errorf("looking made %v", entries)
	}
	c.run(t, "migrate", "extra").expect(t, pawl.ExitUsage)
	c.run(t, "migrate", "--database", "mysql://u:hunter2@h/x").expect(t, pawl.ExitUsage, "--database")
	for _, more := range [][]string{nil, {"--dry-run"}} {
		r := c.run(t, append([]string{"migrate", "--database", "postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=1"}, more...)...)
		if r.code == pawl.ExitDone || strings.Contains(r.stderr+r.stdout, "hunter2") {
			t.Errorf("%+v", r)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, "text.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(t, "migrate", "--dry-run", "--database", "sqlite:text.db").expect(t, pawl.ExitFailed)
}

// A program and a node tell the schemas that they serve.
func TestSchemasAreTold(t *testing.T) {
	least, newest := store.Schema()
	var b struct {
		Version, Commit, Date string
		Schema                struct{ Min, Max int }
	}
	r := run(t, "version", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || b.Version == "" || b.Commit == "" || b.Date == "" || b.Schema.Min != least || b.Schema.Max != newest {
		t.Errorf("%s: %v", r.stdout, err)
	}
	h := serve(t)
	defer h.end()
	var list struct {
		Items []struct {
			Name, Version string
			Shares        int
			Roles         []string
			Schema        struct{ Min, Max int }
		}
	}
	err := error(nil)
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && (len(list.Items) != 1 || list.Items[0].Shares != 1); { // it takes them a moment after its start
		r = h.pawl("get", "nodes", "-o", "json")
		err = json.Unmarshal([]byte(r.stdout), &list)
	}
	if err != nil || len(list.Items) != 1 || list.Items[0].Schema.Min != least || list.Items[0].Schema.Max != newest || list.Items[0].Shares != 1 || len(list.Items[0].Roles) != 2 {
		t.Errorf("%s: %v", r.stdout, err)
	}
	if r := h.pawl("get", "nodes"); !strings.Contains(r.stdout, "SCHEMA") || !strings.Contains(r.stdout, schemaWords(client.SchemaRange{Min: least, Max: newest})) {
		t.Errorf("%s", r.stdout)
	}
	h.pawl("get", "node", "x").expect(t, pawl.ExitUsage, "pawl get nodes")
}

// A file that is written anew is as small as its content; PostgreSQL is told what to do.
func TestMigrateVacuums(t *testing.T) {
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		c := call{dir: t.TempDir()}
		r := c.run(t, "migrate", "--vacuum", "--database", url)
		if strings.HasPrefix(url, "sqlite:") {
			if r.code != pawl.ExitDone || !strings.Contains(r.stdout, "The file was ") {
				t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
			}
		} else if r.code == pawl.ExitDone || !strings.Contains(r.stderr, "makes room by itself") || !strings.Contains(r.stderr, "VACUUM FULL") {
			t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
		}
		if r := c.run(t, "migrate", "--vacuum", "--dry-run", "--database", url); r.code == pawl.ExitDone {
			t.Errorf("both: %s", r.stdout)
		}
	})
}
