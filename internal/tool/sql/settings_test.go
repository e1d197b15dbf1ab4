package sqltool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestDefinitionsAreChecked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a b?#.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const good = "url: \"sqlite:./a b?#.db\"\n"
	for definition, want := range map[string]string{
		good: "", "url: sqlite:" + filepath.Join(dir, "a b?#.db") + "\n": "",
		good + "timeout: 1m\nmaxRows: 5\nreadOnly: true\ntrack: false": "",

		"timeout: 1s":        "url is missing",
		"url: mysql://u@h/d": "it must begin with postgres:// or sqlite:",
		"url: \"sqlite:\"":   "it names no file", "url: \"sqlite::memory:\"": "it names no file",
		"url: sqlite:missing.db": "there is no such file", "url: sqlite:.": "it is not a file",
		good + "timeout: soon": "is not a length of time", good + "timeout: 1h": "timeout must be from 1s to 10m",
		good + "maxRows: 0": "maxRows must be from 1 to 100000", good + "maxRows: many": "maxRows must be a whole number",
		good + "readOnly: no way": "readOnly must be true or false", good + "track: 1": "track must be true or false",
		good + "tracks: true": `unknown field "tracks". Did you mean track?`,

		"url: postgres://u:p@/d":                                                   "it names no host",
		"url: postgres:///d?host=/tmp":                                             "it names no host",
		"url: \"postgres://u:p@%2Frun%2Fpostgresql/d\"":                            "it is not a URL",
		"url: postgres://h/d":                                                      "it names no user",
		"url: postgres://u:p@h":                                                    "it names no database",
		"url: \"postgres://u:geheim@h:x/d\"":                                       "it is not a URL",
		"url: postgres://u:geheim@h/d?host=/run":                                   `unknown option "host"`,
		"url: postgres://u:geheim@h/d?passfile=x":                                  `unknown option "passfile"`,
		"url: postgres://u:geheim@h/d?servicefile=x":                               `unknown option "servicefile"`,
		"url: postgres://u:geheim@h/d?sslmod=require":                              "Did you mean sslmode?",
		"url: postgres://u:geheim@h/d?sslmode=sometimes":                           "it is not a URL of PostgreSQL",
		"url: postgres://u:geheim@h/d?sslmode=verify-full&sslrootcert=missing.pem": "a file that it names cannot be read",
	} {
		_, ok, faults := define(t, environment(t), dir, definition)
		if want == "" && (!ok || faults != "") || want != "" && (!strings.Contains(faults, want) || ok && !strings.Contains(want, "unknown field")) {
			t.Errorf("%q is accepted (%v) with %q, want %q", definition, ok, faults, want)
		}
	}
}

func TestCheckingOpensNothing(t *testing.T) {
	dir := t.TempDir()
	env := connector.Env{CheckOnly: true, Getenv: func(string) string { return "" }}
	for _, url := range []string{"sqlite:missing.db", pgtest.URL(t), "postgres://u:p@127.0.0.1:1/d"} {
		if _, ok, faults := define(t, env, dir, "url: "+url); !ok {
			t.Errorf("%s: %s", url, faults)
		}
	}
	look := open(t, pgtest.URL(t), "readOnly: true")
	same(t, []any{}, query(t, look, "select 1 from pg_tables where tablename = 'pawl_calls'"))
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}

// What the environment of the server says about PostgreSQL is for the server.
func TestTheEnvironmentDoesNotReachConnections(t *testing.T) {
	t.Setenv("PGPASSWORD", "of-the-server")
	t.Setenv("PGUSER", "server")
	t.Setenv("PGPORT", "1")
	t.Setenv("PGAPPNAME", "server")
	t.Setenv("PGOPTIONS", "-c search_path=server")
	t.Setenv("PGTARGETSESSIONATTRS", "read-only")
	d, ok, faults := define(t, connector.Env{CheckOnly: true}, t.TempDir(), "url: postgres://u@h/d?search_path=mine")
	if !ok {
		t.Fatal(faults)
	}
	config := d.engine.(*postgres).config
	same(t, []any{"u", "", uint16(5432), "h"}, []any{config.User, config.Password, config.Port, config.Host})
	same(t, map[string]string{"application_name": "pawl", "search_path": "mine"}, config.RuntimeParams)
	if config.ValidateConnect != nil {
		t.Error("the server has to be a read-only one")
	}
}
