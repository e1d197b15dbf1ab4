package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

const (
	pricesYAML = "kind: source\nname: prices\nurl: https://api.example.com/prices\ntable: prices\nschedule: daily\n" +
		"response:\n  fields: [{source: id, target: id}, {source: close, target: close, type: number}]\nlabels: {team: data}\n"
	poetYAML = "kind: schedule\nname: morning-poet\ngraph: langgraph:poet\ninput: {topic: autumn}\ncron: \"0 9 * * *\"\ntimezone: Europe/Berlin\n"
	poetID   = "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e"

	pricesLane = `"kind":"source","name":"prices","id":"s1","status":"Idle","issue":null,"schedule":"Every 24 hours","nextAt":"2030-01-01T00:00:00.000Z",` +
		`"lastActivity":{"at":"2026-01-01T00:00:00.000Z","text":"Fetched 2 new rows"},"pending":0,"paused":false,"labels":{"team":"data"}`
	pricesSummary = `{` + pricesLane + `,"table":"prices","host":"api.example.com","freshness":{"lastSuccessAt":"2026-01-01T00:00:00.000Z","lastAttemptAt":"2026-01-01T00:00:00.000Z","failed":false},` +
		`"totals":{"rows":12,"failures":1},"lastRun":null,"quota":{"limited":true,"limit":100,"left":40,"resetAt":"2030-01-01T00:00:00.000Z","blockedUntil":null},"retries":{"count":1,"max":5,"nextAt":null}`
	pricesWhole = pricesSummary + `,"definition":{"name":"prices","url":"https://api.example.com/prices","response":{"fields":[{"source":"n","target":"note"},{"source":"i","target":"id"}]}},"pagination":"one page","mark":null,` +
		`"gates":[{"name":"schedule","open":false,"text":"It is due tomorrow."}],` +
		`"recent":[{"id":"` + runID + `","kind":"source","lane":"prices","status":"committed","startedAt":"2026-01-01T00:00:00.000Z","endedAt":"2026-01-01T00:00:02.000Z","updatedAt":"2026-01-01T00:00:02.000Z",` +
		`"progress":{"pages":3,"requests":3,"bytes":1500000,"rowsRead":7,"rowsNew":2,"rowsChanged":1,"rowsSame":4,"rejects":1}}]}`
)

// sourceAPI is a server with one source.
func sourceAPI(t *testing.T) *fake {
	t.Helper()
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/sources":                         {200, `{"items":[` + pricesSummary + `}]}`},
		"GET /api/v1/sources/prices":                  {200, pricesWhole},
		"GET /api/v1/sources/prices/rows":             {200, `{"items":[{"id":1,"close":2.5,"_run":"r","source_name":"prices","created_at":"2026-01-01T00:00:00.000Z"},{"id":2,"close":null,"note":{"a":1},"source_name":"prices"}]}`},
		"GET /api/v1/sources/prices/versions":         {200, `{"items":[{"version":"0123456789abcdef","number":2,"createdAt":"2026-01-01T00:00:00.000Z","createdBy":"ann","active":true}]}`},
		"GET /api/v1/sources/prices/rejects":          {200, `{"items":[{"id":"17","runId":"r","page":1,"row":3,"reason":"close: \"n/a\" is no number","raw":"{}","createdAt":"2026-01-01T00:00:00.000Z"}]}`},
		"POST /api/v1/sources/prices/run":             {202, `{}`},
		"POST /api/v1/sources/prices/pause":           {200, pricesWhole},
		"POST /api/v1/sources/prices/resume":          {200, pricesWhole},
		"POST /api/v1/sources/prices/reset":           {200, pricesWhole},
		"DELETE /api/v1/sources/prices":               {200, `{"name":"prices","rows":12}`},
		"GET /api/v1/lanes":                           {200, `{"items":[{` + pricesLane + `},{"kind":"schedule","name":"morning-poet","id":"` + poetID + `","labels":{"team":"data"}}]}`},
		"POST /api/v1/schedules/" + poetID + "/pause": {200, `{}`},
		"GET /api/v1/lanes/source/prices/why":         {200, `{` + pricesLane + `,"next":"It is fetched tomorrow.","gates":[],"recent":[]}`},
		"POST /api/v1/sources/busy/run":               {409, "run_active"},
	})
}

func TestSourcesAreListedWithTheirFreshness(t *testing.T) {
	f := sourceAPI(t)
	r := f.run("get", "sources", "-o", "wide", "-l", "team=data")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{"NAME", "FRESH", "ROWS", "prices", "Idle", "ago", "12", "40 of 100", "api.example.com", "team=data"} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if r := f.run("get", "sources", "-l", "team=other"); !strings.Contains(r.stderr, "No sources.") {
		t.Errorf("other labels: %+v", r)
	}
}

func TestRowsHaveTheColumnsOfTheirTable(t *testing.T) {
	f := sourceAPI(t)
	r := f.run("get", "rows", "prices")
	r.expect(t, pawl.ExitDone)
	var got [][]string
	for line := range strings.Lines(r.stdout) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{{"NOTE", "ID", "CLOSE", "CREATED_AT"}, {"-", "1", "2.5", "2026-01-01T00:00:00.000Z"}, {`{"a":1}`, "2", "-", "-"}} // as defined, then others
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := f.run("get", "rows", "prices", "-o", "wide"); !strings.Contains(r.stdout, "_RUN") || !strings.Contains(r.stdout, "SOURCE_NAME") {
		t.Errorf("wide:\n%s", r.stdout)
	}
}

func TestVersionsAreThoseOfAWorkflowOrASource(t *testing.T) {
	for _, args := range [][]string{{"get", "versions", "source/prices"}, {"get", "versions", "--source", "prices"}} {
		r := sourceAPI(t).run(args...)
		r.expect(t, pawl.ExitDone)
		if !strings.Contains(r.stdout, "0123456789ab ") || !strings.Contains(r.stdout, "yes") || !strings.Contains(r.stdout, "ann") {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
	for _, args := range [][]string{{"get", "versions", "bills"}, {"get", "versions", "workflow/bills"}, {"get", "versions", "--workflow", "bills"}} {
		f := newFake(t, map[string]fakeJSON{"GET /api/v1/workflows/bills/versions": {200, `{"items":[{"version":"v","number":1,"filename":"bills.workflow.ts","active":false}]}`}})
		r := f.run(args...)
		r.expect(t, pawl.ExitDone)
		if !strings.Contains(r.stdout, "bills.workflow.ts") || strings.Contains(r.stdout, "yes") {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
}

func TestRejectsTellWhoseTheyAre(t *testing.T) {
	for _, args := range [][]string{{"get", "rejects"}, {"get", "rejects", "prices"}, {"get", "rejects", "--source", "prices"}} {
		r := sourceAPI(t).run(args...)
		r.expect(t, pawl.ExitDone)
		if !strings.Contains(r.stdout, "prices") || !strings.Contains(r.stdout, `close: "n/a" is no number`) {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
}

func TestSourceIsDescribedInWords(t *testing.T) {
	r := sourceAPI(t).run("describe", "source", "prices")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"The source prices is idle.", "Its rows are of", "It is fetched again in", "one page", "12 written since it was made", "1 since it was made; 1 of 5",
		"40 of 100 calls left, all of them again in", "It is due tomorrow.", "1.5 MB", "committed", runID, "https://api.example.com/prices", "pawl get rows prices",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
}

func TestVerbsOfSources(t *testing.T) {
	for _, tt := range []struct{ args, asked, said string }{
		{"run source prices", "POST /api/v1/sources/prices/run", "source prices will run now\n"},
		{"pause src prices", "POST /api/v1/sources/prices/pause", "source prices paused\n"},
		{"resume source prices", "POST /api/v1/sources/prices/resume", "source prices resumed\n"},
		{"reset source prices", "POST /api/v1/sources/prices/reset", "source prices reset\n"},
		{"reset source prices --all", "POST /api/v1/sources/prices/reset", "source prices reset; everything is fetched again\n"},
		{"delete source prices --yes", "DELETE /api/v1/sources/prices", "source prices deleted, with 12 rows\n"},
		{"delete source prices --yes --keep-rows", "DELETE /api/v1/sources/prices?keepRows=true", "source prices deleted; its rows stay\n"},
		{"get runs --source prices", "", ""},
	} {
		f := sourceAPI(t)
		r := f.run(strings.Fields(tt.args)...)
		if tt.asked == "" {
			if !strings.Contains(f.requests(), "kind=source&lane=prices") {
				t.Errorf("%s asked %s", tt.args, f.requests())
			}
			continue
		}
		r.expect(t, pawl.ExitDone)
		if r.stdout != tt.said || f.requests() != tt.asked {
			t.Errorf("%s: asked %s, said %s", tt.args, f.requests(), r.stdout)
		}
	}
	f := sourceAPI(t)
	f.run("reset", "source", "prices", "--all").expect(t, pawl.ExitDone)
	if got := f.sent(); len(got) != 1 || got[0] != `{"all":true}` {
		t.Errorf("sent %v", got)
	}
	f.run("run", "source", "busy").expect(t, pawl.ExitRefused, "(run_active)")
	if r := f.run("why", "source", "prices"); !strings.Contains(r.stdout, "It is fetched tomorrow.") {
		t.Errorf("why: %+v", r)
	}
}

func TestDeleteOfASourceTellsHowManyRowsAreLost(t *testing.T) {
	f := sourceAPI(t)
	f.run("delete", "source", "prices").expect(t, pawl.ExitUsage, "--yes")
	if f.requests() != "" {
		t.Errorf("asked %s", f.requests())
	}
	c := f.call()
	c.terminal, c.stdin, c.env["NO_COLOR"] = true, "n\n", "1"
	c.run(t, "delete", "source", "prices").expect(t, pawl.ExitRefused, "table prices go with it: it has written 12 rows")
	c.run(t, "delete", "source", "prices", "--keep-rows").expect(t, pawl.ExitRefused, "Its rows stay in the table prices")
	c.stdin = "y\n"
	if r := c.run(t, "delete", "source", "prices"); r.code != pawl.ExitDone || !strings.Contains(f.requests(), "DELETE") {
		t.Errorf("yes: %+v", r)
	}
}

func TestLabelsReachAllKinds(t *testing.T) {
	f := sourceAPI(t)
	r := f.run("pause", "-l", "team=data")
	r.expect(t, pawl.ExitDone)
	if want := "source prices paused\nschedule morning-poet paused\n"; r.stdout != want {
		t.Errorf("said %s", r.stdout)
	}
	if want := "GET /api/v1/lanes?limit=200\nPOST /api/v1/sources/prices/pause\nPOST /api/v1/schedules/" + poetID + "/pause"; f.requests() != want {
		t.Errorf("asked %s", f.requests())
	}
	if got := f.sent(); len(got) != 2 || got[0] != `{}` || got[1] != `{}` {
		t.Errorf("sent %v", got)
	}
}

func TestCompletionProposesNames(t *testing.T) {
	f := sourceAPI(t)
	for _, args := range [][]string{{"describe", "source"}, {"get", "rows"}, {"reset", "source"}} {
		r := f.run(append(append([]string{"__complete"}, args...), "")...)
		if !strings.HasPrefix(r.stdout, "prices\n") {
			t.Errorf("%v: %q", args, r.stdout)
		}
	}
}

func TestApplySendsEveryKindInItsOrder(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{
		"PUT /api/v1/workflows/a":                    deployed(t, "a", "created", ""),
		"PUT /api/v1/sources/prices":                 {201, `{"name":"prices","what":"created","definition":{"name":"prices"},"previous":null}`},
		"PUT /api/v1/schedules/by-name/morning-poet": {200, `{"what":"updated","schedule":{"id":"1","name":"morning-poet","cron":"0 9 * * *","updatedAt":"2026-01-02"},"previous":{"id":"1","name":"morning-poet","cron":"0 8 * * *","updatedAt":"2026-01-01"}}`},
	})
	files := map[string]string{"a.workflow.ts": validScript("a"), "all.yaml": poetYAML + "---\n" + pricesYAML}
	r := apply(t, f, files, "-f", ".", "--diff")
	r.expect(t, pawl.ExitDone, "2 created, 1 updated.")
	want := "workflow a created\nsource prices created\nschedule morning-poet updated\n--- deployed/morning-poet\n+++ all.yaml\n@@ -1,2 +1,2 @@\n-cron: 0 8 * * *\n+cron: 0 9 * * *\n name: morning-poet\n"
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Error(diff)
	}
	var source, schedule map[string]any // each comes twice: first it is asked what it would change
	if json.Unmarshal([]byte(f.sent()[3]), &source) != nil || source["url"] != "https://api.example.com/prices" || source["status"] != nil {
		t.Errorf("sent %s", f.sent()[3])
	}
	if json.Unmarshal([]byte(f.sent()[5]), &schedule) != nil || schedule["graphId"] != "langgraph:poet" || schedule["enabled"] != nil {
		t.Errorf("sent %s", f.sent()[5])
	}
	if r := apply(t, f, files, "-f", ".", "--dry-run"); !strings.Contains(r.stdout, "source prices created (dry run)") || !strings.Contains(f.requests(), "PUT /api/v1/sources/prices?dryRun=true") {
		t.Errorf("dry run: %+v, asked %s", r, f.requests())
	}
	c := f.call()
	c.stdin = pricesYAML
	if r := c.run(t, "apply", "-f", "-"); r.stdout != "source prices created\n" {
		t.Errorf("stdin: %+v", r)
	}
}

func TestApplyTellsThePlaceOfWhatTheServerRefuses(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{
		"PUT /api/v1/schedules/by-name/morning-poet": {422, `{"code":"invalid","detail":"The schedule is not valid.","errors":[{"pointer":"/graphId","message":"is not known here"}]}`},
	})
	r := apply(t, f, map[string]string{"poet.yaml": poetYAML}, "poet.yaml")
	r.expect(t, pawl.ExitFailed, "apply poet.yaml: schedule morning-poet: The schedule is not valid.", "poet.yaml:3:8: graph is not known here")
	both := map[string]string{"a.yaml": poetYAML, "b.yaml": "\n" + poetYAML}
	apply(t, f, both, ".").expect(t, pawl.ExitFailed, `b.yaml:3:7: schedule "morning-poet" is also defined in a.yaml`)
}

func TestValidateChecksEveryKind(t *testing.T) {
	provider := "kind: provider\ndomain: api.example.com\nlimit: 10\nperiod: 1m\napiKey: ${PRICES_KEY}\n"
	executor := "kind: executor\nname: agents\ntype: http\ngraphs: {poet: {url: \"https://agents.example.com/poet\"}}\n"
	connection := "kind: connection\nname: outbox\ntype: file\nroot: ./out\n"
	book := "kind: prices\nmodels: {gpt-x: {input: 1.25, output: 10, unit: 1M}}\n"
	good := call{dir: folder(t, map[string]string{
		"a.yaml": pricesYAML + "---\n" + poetYAML, "b.yaml": provider, "c.yaml": executor + "---\n" + connection, "d.yaml": strings.Replace(pricesYAML, "name: prices", "name: other", 1) + "---\n" + connection[:17] + "name: second\ntype: file\nroot: ./out\n",
		"e.yaml": book,
	})}
	r := good.run(t, "validate", ".")
	r.expect(t, pawl.ExitDone, "b.yaml: warning: the environment variable PRICES_KEY is not set here")
	for _, w := range []string{
		"a.yaml: ok (source prices, 2 fields into the table prices)", "a.yaml: ok (schedule morning-poet of the graph langgraph:poet)", "b.yaml: ok (provider of api.example.com)",
		"c.yaml: ok (executor agents, type http)", "c.yaml: ok (connection outbox, type file)", "d.yaml: ok (source other, ", "e.yaml: ok (prices of models)",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s%s", w, r.stdout, r.stderr)
		}
	}
	for name, tt := range map[string]struct{ text, want string }{
		"source":   {strings.Replace(pricesYAML, "table: prices", "tabel: prices", 1), `f.yaml:4:1: unknown field "tabel"`},
		"schedule": {strings.Replace(poetYAML, "0 9 * * *", "0 99 * * *", 1), "f.yaml:5:7: "},
		"provider": {strings.Replace(provider, "limit: 10", "limit: many", 1), "f.yaml:3:8: "},
		"executor": {strings.Replace(executor, "type: http", "type: htpt", 1), "f.yaml:3:7: unknown type"},
		"prices":   {strings.Replace(book, "1.25", "-1", 1), "f.yaml:2:25: "},
		"a model":  {book + "---\n" + book, `f.yaml:5:10: the model "gpt-x" has its price at `},
		"kind":     {"kind: schedul\nname: x\n", `f.yaml:1:7: this version has no kind "schedul". Did you mean schedule?`},
		"second":   {pricesYAML + "---\n" + pricesYAML, `f.yaml:11:7: source "prices" is also defined in f.yaml`},
		"no YAML":  {"kind: source\nname: [\n", "f.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			call{dir: folder(t, map[string]string{"f.yaml": tt.text})}.run(t, "validate", "f.yaml").expect(t, pawl.ExitFailed, tt.want)
		})
	}
}
