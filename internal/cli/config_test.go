package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/server"
)

// resolve loads the settings of a command that was called with flags.
func resolve(t *testing.T, s scope, c call, flags ...string) (*resolved, error) {
	t.Helper()
	p, _, _ := c.process(t)
	cmd := &cobra.Command{Use: "test"}
	sf := addSettingFlags(cmd, s)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	return sf.load(p)
}

// samples are three values for every setting, as flag, variable and key, and
// what each comes to.
func samples() map[string][3][2]string {
	return map[string][3][2]string{
		"addr":                   {{"a:1", "a:1"}, {"b:2", "b:2"}, {"c:3", "c:3"}},
		"hookAddr":               {{"a:1", "a:1"}, {"b:2", "b:2"}, {"c:3", "c:3"}},
		"database":               {{"postgres://a", "postgres://a"}, {"postgres://b", "postgres://b"}, {"postgres://c", "postgres://c"}},
		"data":                   {{"/a", "/a"}, {"/b", "/b"}, {"/c", "/c"}},
		"providers":              {{"/a,x", "/a,x"}, {"/b", "/b"}, {"[/c, /d]", "/c,/d"}},
		"providerDirs":           {{"/a", "/a"}, {"/b:/bb", "/b,/bb"}, {"/c", "/c"}},
		"connectionDir":          {{"/a", "/a"}, {"/b", "/b"}, {"/c", "/c"}},
		"workers":                {{"1", "1"}, {"2", "2"}, {"3", "3"}},
		"sourceQueue":            {{"1", "1"}, {"2", "2"}, {"3", "3"}},
		"allowHost":              {{"a.example", "a.example"}, {"b.example, c.example", "b.example,c.example"}, {"[d.example]", "d.example"}},
		"allowPrivate":           {{"10.0.0.0/8", "10.0.0.0/8"}, {"10.1.0.0/16, 10.2.0.0/16", "10.1.0.0/16,10.2.0.0/16"}, {"[10.3.0.0/16]", "10.3.0.0/16"}},
		"roles":                  {{"api", "api"}, {"worker", "worker"}, {"[worker, api]", "worker,api"}},
		"scriptTimeout":          {{"1m", "60s"}, {"90", "90s"}, {"300", "300s"}},
		"scriptMemory":           {{"64MiB", "64MiB"}, {"1GiB", "1GiB"}, {"1048576", "1MiB"}},
		"maxPayload":             {{"1kB", "1000"}, {"2KiB", "2KiB"}, {"3KiB", "3KiB"}},
		"drain":                  {{"1s", "1s"}, {"2s", "2s"}, {"1d", "86400s"}},
		"autoFix":                {{"command", "command"}, {"openai", "openai"}, {"off", "off"}},
		"autoFixCommand":         {{"a", "a"}, {"b,c", "b,c"}, {"[d, e]", "d,e"}},
		"autoFixURL":             {{"https://a", "https://a"}, {"https://b", "https://b"}, {"https://c", "https://c"}},
		"autoFixModel":           {{"a", "a"}, {"b", "b"}, {"c", "c"}},
		"autoFixKeyFile":         {{"/a", "/a"}, {"/b", "/b"}, {"/c", "/c"}},
		"notifyWebhooks":         {{"https://a/x", "https://a/x"}, {"https://b", "https://b"}, {"[https://c, https://d]", "https://c,https://d"}},
		"notifySecretFile":       {{"/a", "/a"}, {"/b", "/b"}, {"/c", "/c"}},
		"notifyMailHost":         {{"a", "a"}, {"b", "b"}, {"c", "c"}},
		"notifyMailPort":         {{"1", "1"}, {"2", "2"}, {"3", "3"}},
		"notifyMailTLS":          {{"tls", "tls"}, {"starttls", "starttls"}, {"none", "none"}},
		"notifyMailUser":         {{"a", "a"}, {"b", "b"}, {"c", "c"}},
		"notifyMailPasswordFile": {{"/a", "/a"}, {"/b", "/b"}, {"/c", "/c"}},
		"notifyMailFrom":         {{"a@a", "a@a"}, {"b@b", "b@b"}, {"c@c", "c@c"}},
		"notifyMailTo":           {{"a@a", "a@a"}, {"b@b", "b@b"}, {"[c@c, d@d]", "c@c,d@d"}},
		"heartbeatURL":           {{"https://a", "https://a"}, {"https://b", "https://b"}, {"https://c", "https://c"}},
		"publicURL":              {{"https://a", "https://a"}, {"https://b", "https://b"}, {"https://c", "https://c"}},
		"executionURL":           {{"https://a", "https://a"}, {"https://b", "https://b"}, {"https://c", "https://c"}},
		"keep":                   {{"runs=1d", "slots=9d,reads=2h,logs=3d,runs=1d"}, {"reads=2h, logs=3d", "slots=9d,reads=2h,logs=3d"}, {"{slots: 9d}", "slots=9d"}}, // each adds to the others
		"otlpEndpoint":           {{"http://a", "http://a"}, {"http://b", "http://b"}, {"http://c", "http://c"}},
		"grantUsdPerDay":         {{"1", "1"}, {"2.5", "2.5"}, {"3", "3"}},
		"grantUsdPerRun":         {{"none", "none"}, {"0.25", "0.25"}, {"3", "3"}},
		"allowCommands":          {{"true", "true"}, {"0", "false"}, {"true", "true"}},
		"noCanary":               {{"true", "true"}, {"0", "false"}, {"true", "true"}},
		"logFormat":              {{"json", "json"}, {"text", "text"}, {"json", "json"}},
		"logLevel":               {{"warn", "warn"}, {"debug", "debug"}, {"error", "error"}},
		"server":                 {{"http://a", "http://a"}, {"http://b", "http://b"}, {"http://c", "http://c"}},
		"token":                  {{"ta", "ta"}, {"tb", "tb"}, {"", ""}},
		"tokenFile":              {{"/a", "/a"}, {"/b", "/b"}, {"/c", "/c"}},
	}
}

func TestFlagBeatsVariableBeatsFileBeatsDefault(t *testing.T) {
	for _, def := range settings() {
		sample, ok := samples()[def.name()]
		if !ok {
			t.Errorf("%s: this table has no values for it", def.name())
			continue
		}
		t.Run(def.name(), func(t *testing.T) {
			defaults := defaultValues()
			file, env, flag := map[string]string{}, map[string]string{}, []string{}
			check := func(where, want string) {
				t.Helper()
				s := forServer
				if def.scope&forServer == 0 {
					s = forClient
				}
				r, err := resolve(t, s, call{dir: folder(t, file), env: env}, flag...)
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				if got := formatValue(def.at(&r.values)); got != want {
					t.Errorf("%s: got %q, want %q", where, got, want)
				}
				if origin := r.origin[def.name()]; (origin == "") != (where == "default") {
					t.Errorf("%s: comes from %q", where, origin)
				}
			}
			if !def.paths && def.key != "database" { // those are made absolute
				check("default", formatValue(def.at(&defaults)))
			}
			if def.key != "" {
				file["pawl.yaml"] = def.key + ": " + sample[2][0] + "\n"
				check("file", sample[2][1])
			}
			env[def.env] = sample[1][0]
			check("variable", sample[1][1])
			flag = []string{"--" + def.flag + "=" + sample[0][0]}
			check("flag", sample[0][1])
		})
	}
}

func TestEveryFieldOfTheServerHasASetting(t *testing.T) {
	// Dirs come as arguments and Version from the build.
	var v values
	for _, def := range serverSettings() {
		switch target := def.at(&v).(type) {
		case *string:
			*target = "x"
		case *[]string:
			*target = []string{"x"}
		case *bool:
			*target = true
		case *int:
			*target = 1
		case *int64:
			*target = 1
		case *time.Duration:
			*target = 1
		}
	}
	want := server.Config{
		Addr: "x", HookAddr: "x", Database: "x", Data: "x", Providers: []string{"x"}, ProviderDirs: []string{"x"}, ConnectionDir: "x",
		Workers: 1, SourceQueue: 1, AllowPrivate: []string{"x"}, AllowCommands: true, NoCanary: true, GrantUSDPerDay: "x", GrantUSDPerRun: "x", AllowHosts: []string{"x"}, Roles: []string{"x"}, ScriptTimeout: 1, ScriptMemory: 1,
		LogFormat: "x", LogLevel: "x", MaxPayload: 1, Drain: 1,
		AutoFix: "x", AutoFixCommand: []string{"x"}, AutoFixURL: "x", AutoFixModel: "x", AutoFixKeyFile: "x",
		NotifyWebhooks: []string{"x"}, NotifySecretFile: "x", NotifyMailHost: "x", NotifyMailPort: 1, NotifyMailTLS: "x", NotifyMailUser: "x",
		NotifyMailPasswordFile: "x", NotifyMailFrom: "x", NotifyMailTo: []string{"x"}, HeartbeatURL: "x", PublicURL: "x", ExecutionURL: "x", Keep: []string{"x"}, OTLPEndpoint: "x",
	}
	if diff := cmp.Diff(want, v.server); diff != "" {
		t.Error(diff)
	}
}

// For how long things are kept is refused where it makes no sense, with the place;
// of one kind the flag counts more than the variable, and that more than the file.
func TestAgesAreCheckedWhereTheyAreGiven(t *testing.T) {
	for _, c := range []struct{ file, env, flag, want string }{
		{"keep: {runs: -1d}\n", "", "", "pawl.yaml:1:14: keep: runs: \"-1d\" keeps nothing"},
		{"keep: [runs=0s]\n", "", "", "pawl.yaml:1:7: keep: runs: \"0s\" keeps nothing"},
		{"keep:\n  runs: 1d\n  runz: 1d\n", "", "", "pawl.yaml:3:9: keep: there is nothing called \"runz\" to keep"},
		{"keep: {runs: [1]}\n", "", "", "pawl.yaml:1:14: keep: runs: a text is needed"},
		{"keep: {}\n", "", "", "pawl.yaml:1:7: keep: the mapping is empty; leave the key out instead"},
		{"keep: soon\n", "", "", "pawl.yaml:1:7: keep: \"soon\" has no age"},
		{"", "runs=soon", "", "PAWL_KEEP: runs: \"soon\" is not an age"},
		{"", "runs=1d,runs", "reads=1d", "PAWL_KEEP: \"runs\" has no age"},
		{"", "", "receipts=1h", "--keep: receipts: \"1h\" is too short"},
	} {
		var flags []string
		if c.flag != "" {
			flags = []string{"--keep", c.flag}
		}
		_, err := resolve(t, forServer, call{dir: folder(t, map[string]string{"pawl.yaml": c.file}), env: map[string]string{"PAWL_KEEP": c.env}}, flags...)
		if err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	r, err := resolve(t, forServer, call{dir: folder(t, map[string]string{"pawl.yaml": "keep: {runs: 1d, logs: 1d, reads: 1d}\n"}), env: map[string]string{"PAWL_KEEP": "runs=2d,logs=2d"}}, "--keep", "runs=3d")
	if err != nil {
		t.Fatal(err)
	}
	ages, err := retention.Parse(r.server.Keep)
	if got := strings.Join(ages.Texts(), " "); err != nil || got != "runs=3d reads=1d logs=2d" {
		t.Error(got, err)
	}
}

func TestRepeatedFlagsAddUp(t *testing.T) {
	r, err := resolve(t, forServer, call{}, "--provider", "/a", "--provider", "/b", "--allow-private", "10.0.0.0/8,::1", "--allow-private", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/a", "/b"}, r.server.Providers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.0/8", "::1", "127.0.0.1"}, r.server.AllowPrivate); diff != "" {
		t.Error(diff)
	}
}

func TestDatabaseIsInTheDataFolderUnlessItWasNamed(t *testing.T) {
	dir := folder(t, map[string]string{"pawl.yaml": "data: there\n"})
	tests := map[string]struct {
		c     call
		flags []string
		want  string
	}{
		"default":          {call{dir: t.TempDir()}, nil, ".pawl/pawl.db"},
		"data by flag":     {call{dir: t.TempDir()}, []string{"--data", "x"}, "x/pawl.db"},
		"data by file":     {call{dir: dir}, nil, "there/pawl.db"},
		"data by env":      {call{dir: dir, env: map[string]string{"PAWL_DATA": "y"}}, nil, "y/pawl.db"},
		"database as well": {call{dir: dir}, []string{"--database", "sqlite:z.db"}, "z.db"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := resolve(t, forServer, tt.c, tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if want := "sqlite:" + filepath.Join(tt.c.dir, tt.want); r.server.Database != want {
				t.Errorf("got %s, want %s", r.server.Database, want)
			}
		})
	}
}

func TestCommandsFindTheServerWhereItListens(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:9000": "http://127.0.0.1:9000", ":9000": "http://127.0.0.1:9000", "0.0.0.0:9000": "http://127.0.0.1:9000",
		"[::1]:9000": "http://[::1]:9000", "127.0.0.1:0": "http://127.0.0.1:7295", "pawl.example:80": "http://pawl.example:80",
	} {
		r, err := resolve(t, forClient, call{env: map[string]string{"PAWL_ADDR": addr}})
		if err != nil {
			t.Fatal(err)
		}
		if r.url != want {
			t.Errorf("%s: got %s, want %s", addr, r.url, want)
		}
	}
	r, err := resolve(t, forClient, call{env: map[string]string{"PAWL_ADDR": "a:1", "PAWL_URL": "http://b:2"}})
	if err != nil || r.url != "http://b:2" {
		t.Errorf("PAWL_URL does not win: %v, %v", r, err)
	}
}

func TestVariableOfAnotherCommandDoesNoHarm(t *testing.T) {
	if _, err := resolve(t, forClient, call{env: map[string]string{"PAWL_WORKERS": "many"}}); err != nil {
		t.Error(err)
	}
}

func TestWrongVariableIsNamed(t *testing.T) {
	for name, value := range map[string]string{"PAWL_WORKERS": "many", "PAWL_SCRIPT_MEMORY": "1 potato", "PAWL_SCRIPT_TIMEOUT": "soon", "PAWL_ROLES": "chef", "PAWL_ALLOW_PRIVATE": "everything"} {
		call{env: map[string]string{name: value}}.run(t, "serve").expect(t, pawl.ExitUsage, name)
	}
}

func TestConfigFileThatWasAskedForMustBeThere(t *testing.T) {
	run(t, "serve", "--config", "absent.yaml").expect(t, pawl.ExitUsage, "--config", "absent.yaml")
	call{env: map[string]string{"PAWL_CONFIG": "absent.yaml"}}.run(t, "serve").expect(t, pawl.ExitUsage, "PAWL_CONFIG")
	r, err := resolve(t, forServer, call{dir: folder(t, map[string]string{"other.yaml": "workers: 3", "pawl.yaml": "workers: 4"})}, "--config", "other.yaml")
	if err != nil || r.server.Workers != 3 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestFaultInConfigFileIsToldWithItsPlace(t *testing.T) {
	tests := map[string]struct{ file, says, hint string }{
		"unknown key":     {"addr: :1\n\nworker: 8\n", `pawl.yaml:3:1: unknown key "worker"`, "Did you mean workers?"},
		"far from any":    {"frobnicate: 1\n", `pawl.yaml:1:1: unknown key "frobnicate"`, "camelCase"},
		"flag spelling":   {"allow-private: [10.0.0.0/8]\n", `pawl.yaml:1:1: unknown key "allow-private"`, "Did you mean allowPrivate?"},
		"secret":          {"token: abc\n", "pawl.yaml:1:1: token: a config file holds no secrets", "tokenFile"},
		"number as text":  {"workers: \"8\"\n", "pawl.yaml:1:10: workers: a whole number", ""},
		"number as list":  {"workers: [8]\n", "pawl.yaml:1:10: workers: a whole number is needed", ""},
		"text as number":  {"logLevel: 3\n", "pawl.yaml:1:11: logLevel: a text is needed", ""},
		"text as mapping": {"addr:\n  host: x\n", "pawl.yaml:2:", ""},
		"size":            {"data: x\nscriptMemory: lots\n", `pawl.yaml:2:15: scriptMemory: "lots" is not a size`, ""},
		"time":            {"scriptTimeout: soon\n", `pawl.yaml:1:16: scriptTimeout: "soon" is not a duration`, ""},
		"list of numbers": {"roles: [1]\n", "pawl.yaml:1:", ""},
		"empty list":      {"roles: []\n", "the list is empty", ""},
		"nothing":         {"workers:\n", "workers: a whole number is needed", ""},
		"twice":           {"workers: 1\nworkers: 2\n", "pawl.yaml:2:1", ""},
		"no mapping":      {"- a\n- b\n", "pawl.yaml:1:1: a config file is a list of keys and values", ""},
		"not YAML":        {"addr: \"x\n", "pawl.yaml:1:7", ""},
		"two documents":   {"workers: 1\n---\nworkers: 2\n", "one document", ""},
		"range":           {"\nworkers: 0\n", "pawl.yaml:2:10: workers: 0 is out of range", "1 to 10000"},
		"unknown role":    {"roles: [chef]\n", `unknown role "chef"`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := call{dir: folder(t, map[string]string{"pawl.yaml": tt.file})}.run(t, "serve")
			r.expect(t, pawl.ExitUsage, tt.says, tt.hint)
		})
	}
}

func TestEmptyConfigFileIsFine(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "---\n", "{}\n"} {
		if _, err := resolve(t, forServer, call{dir: folder(t, map[string]string{"pawl.yaml": text})}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTokenComesFromWhereItShould(t *testing.T) {
	dir := folder(t, map[string]string{".pawl/admin.token": "admin\n", "data/admin.token": "other\n", "file": " filed \n"})
	tests := map[string]struct {
		flags []string
		want  string
	}{
		"local server":             {nil, "admin"},
		"other data folder":        {[]string{"--data", "data"}, "other"},
		"data folder without one":  {[]string{"--data", "absent"}, ""},
		"localhost":                {[]string{"--server", "http://localhost:1"}, "admin"},
		"IPv6 loopback":            {[]string{"--server", "http://[::1]:1"}, "admin"},
		"server elsewhere":         {[]string{"--server", "http://pawl.example"}, ""},
		"name like a loopback one": {[]string{"--server", "http://127.0.0.1.example"}, ""},
		"given":                    {[]string{"--token", "given"}, "given"},
		"token file":               {[]string{"--token-file", "file", "--server", "http://pawl.example"}, "filed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := resolve(t, forClient, call{dir: dir}, tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := r.findToken(); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	call{dir: dir}.run(t, "get", "jobs", "--token-file", "absent").expect(t, pawl.ExitUsage, "--token-file")
}

func TestSizesAndTimesAreReadBackAsWritten(t *testing.T) {
	for text, want := range map[string]int64{"128MiB": 128 << 20, "1KiB": 1024, "2kB": 2000, "3 MB": 3e6, "10": 10, "7B": 7, "1GiB": 1 << 30} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "99999999999GiB", "1TB"} {
		if n, err := parseSize(text); err == nil {
			t.Errorf("%q is a size of %d", text, n)
		}
	}
	for text, want := range map[string]time.Duration{"300": 300 * time.Second, "300s": 300 * time.Second, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "250ms": 250 * time.Millisecond} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	if !strings.HasSuffix(formatSize(5<<20), "MiB") || formatSize(1001) != "1001" {
		t.Error("sizes are not written as they are read")
	}
}
