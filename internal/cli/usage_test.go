package cli

import (
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

func TestMistakesOnTheCommandLineExitWith2AndAHint(t *testing.T) {
	tests := map[string]struct {
		args []string
		says []string
	}{
		"command":                 {[]string{"gett", "jobs"}, []string{`unknown command "gett"`, "Did you mean get?"}},
		"command far from any":    {[]string{"xyzzy"}, []string{`unknown command "xyzzy"`, "pawl --help"}},
		"command with flag":       {[]string{"serv", "--addr", ":1"}, []string{`unknown command "serv"`, "Did you mean serve?"}},
		"subcommand":              {[]string{"token", "creat", "x"}, []string{`unknown command "creat" for pawl token`, "Did you mean create?"}},
		"help of unknown":         {[]string{"help", "gte"}, []string{"Did you mean get?"}},
		"flag":                    {[]string{"get", "jobs", "--sever", "x"}, []string{"unknown flag --sever", "Did you mean --server?"}},
		"flag of the root":        {[]string{"--bogus"}, []string{"unknown flag --bogus"}},
		"short flag":              {[]string{"get", "jobs", "-x"}, []string{"unknown flag -x"}},
		"flag without value":      {[]string{"get", "jobs", "--server"}, []string{"--server"}},
		"argument missing":        {[]string{"get"}, []string{"Usage: pawl get KIND"}},
		"argument too many":       {[]string{"describe", "job", "1", "2"}, []string{`does not take "2"`}},
		"kind":                    {[]string{"get", "jbos"}, []string{`no kind "jbos"`, "Did you mean jobs?"}},
		"kind of another version": {[]string{"get", "secrets"}, []string{`no kind "secrets"`, "workflows, sources, schedules, lanes", "jobs, tasks, tokens"}},
		"kind not described":      {[]string{"describe", "token", "x"}, []string{"tokens cannot be described"}},
		"kind not deleted":        {[]string{"delete", "run", "x"}, []string{"runs cannot be deleted"}},
		"kind not run":            {[]string{"run", "job", "x"}, []string{"pawl run does not apply to jobs", "workflows"}},
		"kind not paused":         {[]string{"pause", "token", "x"}, []string{"pawl pause does not apply to tokens"}},
		"kind without why":        {[]string{"why", "grant", "x"}, []string{"pawl why does not apply to grants"}},
		"time of why":             {[]string{"why", "workflow", "x", "--at", "soon"}, []string{`--at: "soon" is not a time`}},
		"pause without a name":    {[]string{"pause", "workflow"}, []string{"needs a kind and a name"}},
		"pause name and labels":   {[]string{"pause", "workflow", "x", "-l", "a=b"}, []string{"cannot go together"}},
		"no selector":             {[]string{"resume", "-l", "team"}, []string{`-l: "team" is not a label`}},
		"selector of a kind":      {[]string{"get", "jobs", "-l", "a=b"}, []string{"-l does not apply to jobs"}},
		"inputs of nothing":       {[]string{"get", "inputs"}, []string{"inputs are listed for one workflow", "pawl get inputs WORKFLOW"}},
		"inputs of two":           {[]string{"get", "inputs", "a", "--workflow", "b"}, []string{"cannot go together"}},
		"workflow of jobs":        {[]string{"get", "jobs", "--workflow", "b"}, []string{"--workflow does not apply to jobs"}},
		"workflow and lane":       {[]string{"get", "runs", "--workflow", "b", "--lane", "c"}, []string{"--lane does not apply"}},
		"one run with a filter":   {[]string{"get", "run", "1", "--status", "active"}, []string{"--status does not apply"}},
		"cancel of another kind":  {[]string{"cancel", "job", "1"}, []string{`does not take "1"`}},
		"near a source":           {[]string{"describe", "sorce", "x"}, []string{`no kind "sorce"`, "Did you mean sources?"}},
		"rows of nothing":         {[]string{"get", "rows"}, []string{"rows are listed for one source", "pawl get rows SOURCE"}},
		"rejects of a workflow":   {[]string{"get", "rejects", "--workflow", "a"}, []string{"--workflow does not apply to rejects"}},
		"runs of two kinds":       {[]string{"get", "runs", "--workflow", "a", "--source", "b"}, []string{"--source cannot go together"}},
		"all of sources":          {[]string{"get", "sources", "--all"}, []string{"--all does not apply to sources"}},
		"versions of nothing":     {[]string{"get", "versions"}, []string{"versions are listed for one workflow", "pawl get versions WORKFLOW"}},
		"versions of no source":   {[]string{"get", "versions", "source/"}, []string{"versions are listed for one source"}},
		"versions of a schedule":  {[]string{"get", "versions", "--schedule", "x"}, []string{"--schedule does not apply"}},
		"keep rows of a job":      {[]string{"delete", "job", "1", "--keep-rows"}, []string{"--keep-rows does not apply to jobs"}},
		"reset of another kind":   {[]string{"reset", "workflow", "x"}, []string{"workflows cannot be reset"}},
		"grant of nothing":        {[]string{"grant", "create"}, []string{"needs a graph that may run"}},
		"grant of no graph":       {[]string{"grant", "create", "--graph", "poet"}, []string{"--graph: "}},
		"grant without consent":   {[]string{"grant", "create", "--all-graphs"}, []string{"needs your consent", "--consent"}},
		"grant of both":           {[]string{"grant", "create", "--all-graphs", "--graph", "a:b"}, []string{"cannot go together"}},
		"grant consent alone":     {[]string{"grant", "create", "--graph", "a:b", "--consent"}, []string{"--consent is for --all-graphs"}},
		"grant no money":          {[]string{"grant", "create", "--graph", "a:b", "--usd-per-day", "much"}, []string{"--usd-per-day: "}},
		"grant runs below zero":   {[]string{"grant", "create", "--graph", "a:b", "--runs-per-day", "-1"}, []string{"--runs-per-day: -1 is below zero"}},
		"backfill of nothing":     {[]string{"backfill", "poet"}, []string{"needs a schedule, --from and --to"}},
		"backfill backwards":      {[]string{"backfill", "poet", "--from", "2026-02-02", "--to", "2026-02-01"}, []string{"--from must be before --to"}},
		"backfill too slow":       {[]string{"backfill", "poet", "--from", "2026-02-01", "--to", "2026-02-02", "--per-minute", "0"}, []string{"--per-minute: 0 is below one"}},
		"backfill both ways":      {[]string{"backfill", "poet", "--cancel", "1"}, []string{"--cancel stands alone"}},
		"answer no JSON":          {[]string{"approve", "x", "--answer", "{"}, []string{"--answer: this is not JSON"}},
		"hours":                   {[]string{"next", "--hours", "0"}, []string{"--hours: 0 is not between"}},
		"publish without an id":   {[]string{"publish", "w", "t"}, []string{"the event needs an id"}},
		"publish no JSON":         {[]string{"publish", "w", "t", "--id", "1", "--payload", "x"}, []string{"this is not JSON"}},
		"publish no file":         {[]string{"publish", "w", "t", "--id", "1", "--payload", "@absent"}, []string{"--payload: "}},
		"publish no input":        {[]string{"publish", "w", "t", "--id", "1", "--input", "mail:1"}, []string{`"mail:1" is not SOURCE:TYPE:ID`}},
		"publish a title alone":   {[]string{"publish", "w", "t", "--id", "1", "--title", "x"}, []string{"--title is that of an input"}},
		"apply nothing":           {[]string{"apply"}, []string{"there is nothing to apply"}},
		"apply unnamed stdin":     {[]string{"apply", "-f", "-"}, []string{"--filename mail.workflow.ts"}},
		"apply a name too many":   {[]string{"apply", "-f", "x", "--filename", "y"}, []string{"--filename is the name of what comes on stdin"}},
		"kind not retried":        {[]string{"retry", "token", "x"}, []string{"tokens cannot be retried"}},
		"filter of another kind":  {[]string{"get", "tokens", "--state", "x"}, []string{"--state does not apply"}},
		"watch as yaml":           {[]string{"get", "jobs", "-w", "-o", "yaml"}, []string{"cannot be YAML"}},
		"format":                  {[]string{"get", "jobs", "-o", "xml"}, []string{"table, wide, json, yaml"}},
		"name with dots":          {[]string{"delete", "job", ".."}, []string{`".." names no job`}},
		"limit":                   {[]string{"get", "jobs", "--limit", "-1"}, []string{"--limit"}},
		"server":                  {[]string{"get", "jobs", "--server", "nonsense"}, []string{`"nonsense" is not an address`}},
		"number":                  {[]string{"serve", "--workers", "many"}, []string{`--workers: "many" is not a whole number`}},
		"number out of range":     {[]string{"serve", "--workers", "0"}, []string{"--workers: 0 is out of range", "1 to 10000"}},
		"seconds":                 {[]string{"demo", "--seconds", "-1"}, []string{"--seconds"}},
		"expiry":                  {[]string{"token", "create", "x", "--expires", "soon"}, []string{`--expires: "soon" is not a time`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, tt.args...)
			r.expect(t, pawl.ExitUsage, append(tt.says, "error: ")...)
			if r.stdout != "" {
				t.Errorf("stdout carries talk: %s", r.stdout)
			}
		})
	}
}

func TestServerThatIsNotThereExitsWith6(t *testing.T) {
	for _, args := range [][]string{{"get", "jobs"}, {"describe", "job", "1"}, {"delete", "job", "1"}, {"token", "list"}, {"get", "jobs", "-w"}} {
		// Nothing listens on port 1 of loopback.
		r := run(t, append(args, "--server", "http://127.0.0.1:1")...)
		r.expect(t, pawl.ExitUnreachable, "http://127.0.0.1:1", "hint: Start it with: pawl serve")
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	const escape = "\x1b["
	if r := (call{terminal: true}).run(t, "nonsense"); !strings.Contains(r.stderr, escape) {
		t.Error("no colour on a terminal")
	}
	if r := run(t, "nonsense"); strings.Contains(r.stderr, escape) {
		t.Error("colour in a pipe")
	}
	for _, env := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
		if r := (call{terminal: true, env: env}).run(t, "nonsense"); strings.Contains(r.stderr, escape) {
			t.Errorf("colour although %v", env)
		}
	}
}

func TestSuggestionIsTheNearestName(t *testing.T) {
	known := []string{"workers", "roles", "scriptMemory", "addr"}
	for written, want := range map[string]string{
		"worker": "workers", "wrokers": "workers", "ADDR": "addr", "scriptmemory": "scriptMemory", "rules": "roles",
		"xyz": "", "completely-different": "",
	} {
		got := pawl.Suggest(written, known, "")
		if want == "" && got != "" || want != "" && got != "Did you mean "+want+"?" {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
	}
}
