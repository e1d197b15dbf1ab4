package spec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

// least is a definition with nothing but what is needed.
const least = `kind: source
name: prices
url: https://api.example.com/v1/prices
table: prices
response: {fields: [{source: id, target: id}]}
`

// B-02: a definition says where to fetch, how to map, which table to fill, and
// the timeout.
func TestParseReadsEveryField(t *testing.T) {
	got, err := Parse("x", []byte(`kind: source
name: prices-aapl
description: |
  Daily prices
url: https://api.example.com/v3/prices/AAPL
table: prices
schedule: {cron: "0 9 * * 1-5", timezone: Europe/Berlin}
status: stopped
params: [{name: symbol, value: AAPL}, {name: adjusted, value: true}, {name: limit, value: 50}]
headers: [{name: accept, value: application/json}]
execution: {timeout: 5m, maxRetries: 3, retryResetPeriod: 6h}
response:
  format: json
  dataPath: data.items
  fields:
  - {source: date, target: timestamp, type: timestamp, required: true}
  - {source: quote.close, target: close, type: number}
  - {source: symbol, target: symbol}
  errorWhen: {path: error.code, equals: {b: 1, a: [x]}}
  raw: true
  maxPages: 7
  maxBytes: 1000
write: {mode: upsert, key: [symbol, timestamp], connection: warehouse}
offsetPagination: {pageParam: page, limitParam: limit, limit: 50, firstPage: 0, hasMorePath: hasMore, totalPath: total}
incremental: {param: since, cursorPath: updated_at, initial: 2024-01-01, lookback: 60m}
publish: {workflow: price-alerts, topic: price.changed}
labels: {team: data}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Definition{
		Name: "prices-aapl", Description: "Daily prices", URL: "https://api.example.com/v3/prices/AAPL", Table: "prices",
		Schedule: Schedule{Cron: "0 9 * * 1-5", Timezone: "Europe/Berlin"}, Status: "stopped", StatusGiven: true,
		Params:    []Pair{{"symbol", "AAPL"}, {"adjusted", "true"}, {"limit", "50"}},
		Headers:   []Pair{{"Accept", "application/json"}},
		Execution: Execution{Timeout: 300, MaxRetries: 3, RetryResetPeriod: "6h"},
		Response: Response{
			Format: JSON, DataPath: "data.items", Raw: true, MaxPages: 7, MaxBytes: 1000,
			Fields:    []Field{{"date", "timestamp", Timestamp, true}, {"quote.close", "close", Number, false}, {"symbol", "symbol", Text, false}},
			ErrorWhen: &ErrorWhen{Path: "error.code", Equals: json.RawMessage(`{"a":["x"],"b":1}`)},
		},
		Write:            Write{Mode: Upsert, Key: []string{"symbol", "timestamp"}, Connection: "warehouse"},
		OffsetPagination: &OffsetPagination{PageParam: "page", LimitParam: "limit", Limit: 50, FirstPage: 0, HasMorePath: "hasMore", TotalPath: "total"},
		Incremental:      &Incremental{Param: "since", CursorPath: "updated_at", Initial: "2024-01-01", Lookback: "1h"},
		Publish:          &Publish{Workflow: "price-alerts", Topic: "price.changed"},
		Labels:           map[string]string{"team": "data"},
	}
	if diff := cmp.Diff([]Definition{want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseFillsInTheDefaults(t *testing.T) {
	got, err := Parse("x", []byte(least+"offsetPagination: {pageParam: page}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"prices","url":"https://api.example.com/v1/prices","table":"prices","schedule":{"interval":"1d"},"status":"active",` +
		`"execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},` +
		`"response":{"format":"json","fields":[{"source":"id","target":"id","type":"text"}],"maxPages":10000,"maxBytes":1073741824},` +
		`"write":{"mode":"append"},"offsetPagination":{"pageParam":"page","limit":100,"firstPage":1}}`
	text, err := json.Marshal(got[0])
	if err != nil || string(text) != want {
		t.Errorf("the definition is\n%s, want\n%s, %v", text, want, err)
	}
	if got[0].StatusGiven {
		t.Error("a status that is not there counts as given")
	}
}

// Definitions of equal meaning have one version; the stored form, read again,
// is the same.
func TestVersionsTellMeaningsApart(t *testing.T) {
	version := func(text string) string {
		t.Helper()
		list, err := Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		stored, err := json.Marshal(list[0])
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromJSON(stored)
		if err != nil || again.Version() != list[0].Version() {
			t.Errorf("%s, read again, is %+v, %v", stored, again, err)
		}
		return list[0].Version()
	}
	first := version(least)
	for _, same := range []string{
		"schedule: daily", "schedule: interval:24h", "schedule: {interval: 1d}", "status: active", "execution: {timeout: 5m}",
		"execution: {timeout: 300, retryResetPeriod: 24h}", "write: {mode: append}", "params: []", "description: ''", "labels: {}",
	} {
		if version(least+same+"\n") != first {
			t.Errorf("%q changes the version", same)
		}
	}
	for _, other := range []string{"schedule: hourly", "status: stopped", "params: [{name: a, value: b}]", "description: x", "offsetPagination: {pageParam: p}", "offsetPagination: {pageParam: p, firstPage: 0}"} {
		if version(least+other+"\n") == first {
			t.Errorf("%q does not change the version", other)
		}
	}
}

func TestSchedulesAreWrittenInManyWays(t *testing.T) {
	for written, want := range map[string]string{
		"daily": "every day", "hourly": "every hour", "interval:30m": "every 30 minutes", "'interval: 30m'": "every 30 minutes",
		"{interval: 90s}": "every 90 seconds", `{cron: "0 9 * * *"}`: "daily at 09:00 utc", `{cron: "@hourly"}`: "hourly at :00",
	} {
		list, err := Parse("x", []byte(least+"schedule: "+written+"\n"))
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		schedule, err := list[0].Schedule.When()
		if got := schedule.Describe(); err != nil || !strings.Contains(strings.ToLower(got), want) {
			t.Errorf("%s is %q, %v; want %q", written, got, err, want)
		}
	}
}

func TestParseTellsEveryFaultOfEveryDocument(t *testing.T) {
	_, err := Parse("x.yaml", []byte("kind: source\nname: A\nurl: ftp://x\ntabel: y\nresponse: {fields: [{source: id, target: id}]}\n---\nkind: shedule\n---\nb: [\n---\n"+least+"---\n"+least))
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || e.Code != pawl.CodeInvalid {
		t.Fatal(err)
	}
	var got []string
	for _, field := range e.Fields {
		got = append(got, field.Pointer+" "+strings.Join(strings.SplitN(field.String(), ":", 4)[:3], ":"))
	}
	want := []string{" x.yaml:9:4", "/table x.yaml:2:1", "/name x.yaml:2:7", "/url x.yaml:3:6", "/tabel x.yaml:4:1", "/kind x.yaml:7:7", "/name x.yaml:18:7"}
	want[1] = "/table x.yaml:1:1" // where the definition begins
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFromJSONTellsFaultsByPointer(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"kind":"sauce"}`, `/kind kind "sauce" does not belong here. Did you mean source?`},
		{`{"name":"a","url":"https://x/","table":"b","response":{"fields":[{"source":"id"}]}}`, "/response/fields/0/target target is missing"},
		{`{"name":"a","url":"https://x/","table":"b","response":{"fields":[{"source":"id","target":"id","tpye":"text"}]}}`, `/response/fields/0/tpye unknown field "tpye". Did you mean type?`},
		{`{"name":"a"`, " the definition is not valid JSON"},
		{`null`, " a definition is a JSON object"},
	} {
		_, err := FromJSON([]byte(test.text))
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || len(e.Fields) == 0 || !strings.HasPrefix(e.Fields[0].Pointer+" "+e.Fields[0].String(), test.want) {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
	}
	got, err := FromJSON([]byte(`{"name":"a","url":"https://x/","table":"b","response":{"fields":[{"source":"id","target":"id"}]},"status":"active"}`))
	if err != nil || got.Name != "a" || !got.StatusGiven {
		t.Errorf("read %+v, %v", got, err)
	}
}

// FuzzParse: whatever is read can be stored and read again, and means the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		least, least + "schedule: {cron: '0 9 * * *'}\nstatus: x\n", "kind: source\nname: [", "a: &a [*a]", "? a\n: b", "--- !!x\n<<: {}",
		least + "params: [{name: a, value: 1e5}]\nlinkPagination: {header: link}\nincremental: {param: a, cursorPath: b, initial: 5}\n",
		"kind: source\r\nname: \"\\u0000\"\r\n", "- - - -\n---\n...\n%YAML 1.2\n", "kind: source\nresponse: {fields: [{}], maxBytes: 99999999999999999999}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse("x", []byte(text))
		if err != nil {
			if e, ok := errors.AsType[*pawl.Error](err); !ok || len(e.Fields) == 0 {
				t.Fatalf("the error %v has no fields", err)
			}
			return
		}
		for _, d := range list {
			stored, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			again, err := FromJSON(stored)
			if err != nil || again.Version() != d.Version() {
				t.Fatalf("%s, read again, is %+v, %v", stored, again, err)
			}
			if _, err := d.Schedule.When(); err != nil || d.Host() == "" {
				t.Fatalf("the schedule or the host of %s cannot be told: %v", stored, err)
			}
		}
	})
}
