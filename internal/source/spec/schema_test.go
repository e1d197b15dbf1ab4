package spec

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/internal/definition"
)

// What Parse takes, the schema takes; what the schema can tell is wrong, it
// refuses as well.
func TestSchemaAgreesWithParse(t *testing.T) {
	schema := resolved(t)
	for _, test := range []struct {
		lines []string
		valid bool
	}{
		{nil, true},
		{[]string{"schedule: hourly", "execution: {timeout: 5m, maxRetries: 1}", "params: [{name: a, value: 5}]", "labels: {a: b}"}, true},
		{[]string{"schedule: {cron: '0 9 * * *', timezone: Europe/Berlin}", "write: {mode: upsert, key: [id]}"}, true},
		{[]string{"schedule: interval:30m", "response: {raw: true}", "linkPagination: {header: Link}"}, true},
		{[]string{"incremental: {param: a, cursorPath: b, initial: 5, lookback: 1h30m}", "offsetPagination: {pageParam: p, firstPage: 0}"}, true},
		{[]string{"cursorPagination: {cursorParam: a, nextCursorPath: b.c, limitParam: l, limit: 5}", "publish: {workflow: a, topic: b}"}, true},
		{[]string{"name: A"}, false},
		{[]string{"url: ftp://x"}, false},
		{[]string{"table: a-b"}, false},
		{[]string{"tabel: a"}, false},
		{[]string{"schedule: {cron: '0 9 * * *', from: '2026-12-01', until: '2027-06-30', except: ['2026-12-24/2027-01-01', 'calendar:x'], jitter: 5m, missed: {policy: all, within: 12h}}"}, true},
		{[]string{"schedule: {interval: 5m, timezone: Europe/Berlin, from: '2026-12-01', missed: {policy: skip}}"}, true},
		{[]string{"schedule: {interval: 5m, missed: {policy: some}}"}, false},
		{[]string{"schedule: {interval: 5m, missed: {within: 5m}}"}, false},
		{[]string{"schedule: weekly"}, false},
		{[]string{"schedule: {interval: 5m, cron: '* * * * *'}"}, false},
		{[]string{"execution: {timeout: 0}"}, false},
		{[]string{"response: {}"}, false},
		{[]string{"response: {fields: [{source: a, target: b, type: int}]}"}, false},
		{[]string{"write: {mode: upsert}"}, false},
		{[]string{"offsetPagination: {}"}, false},
		{[]string{"offsetPagination: {pageParam: a}", "linkPagination: {header: Link}"}, false},
		{[]string{"cursorPagination: {cursorParam: a, nextCursorPath: b, limit: 5}"}, false},
		{[]string{"linkPagination: {header: Link, nextPath: a}"}, false},
		{[]string{"publish: {topic: a}"}, false},
	} {
		text := []byte(change(test.lines...))
		documents, err := definition.Read("x", text)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(documents[0].JSON(), &value); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("x", text); (err == nil) != test.valid {
			t.Errorf("Parse of %q: %v", test.lines, err)
		}
		if err := schema.Validate(value); (err == nil) != test.valid {
			t.Errorf("the schema on %q: %v", test.lines, err)
		}
	}
}

// The stored form is valid, too, so that what is shown can be sent again.
func TestSchemaTakesTheStoredForm(t *testing.T) {
	list, err := Parse("x", []byte(change("params: [{name: a, value: b}]", "offsetPagination: {pageParam: p}", "response: {raw: true}")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if err := resolved(t).Validate(value); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	r, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
