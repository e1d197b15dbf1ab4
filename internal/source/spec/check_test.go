package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

// change replaces the line of a field of the least definition, or adds one.
func change(lines ...string) string {
	text := least
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		pattern := regexp.MustCompile(`(?m)^` + name + `:.*\n`)
		if pattern.MatchString(text) {
			text = pattern.ReplaceAllLiteralString(text, line+"\n")
		} else {
			text += line + "\n"
		}
	}
	return text
}

func fields(rest string) string { return "response: {fields: [" + rest + "]}" }

func TestFaultsAreTold(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  string // the pointer, and what the message holds
	}{
		{[]string{"name: Prices"}, "/name is not a name"},
		{[]string{"name: -a"}, "/name is not a name"},
		{[]string{"name: " + strings.Repeat("a", 64)}, "/name is not a name"},
		{[]string{"status: 'not active'"}, "/status is not a status"},
		{[]string{"status: ''"}, "/status is not a status"},
		{[]string{`description: "a\0b"`}, "/description control characters"},
		{[]string{"labels: {a b: c}"}, "/labels/a b is not a name for a label"},

		// for how long its things are kept
		{[]string{"keep: {runs: soon}"}, "/keep/runs Write an age such as 12h, 30d or 2w, or forever"},
		{[]string{"keep: {runs: 7}"}, "/keep/runs put it in quotes"},
		{[]string{"keep: {runz: 7d}"}, "/keep/runz Did you mean runs?"},
		{[]string{"keep: {runs: -7d}"}, "/keep/runs keeps nothing"},
		{[]string{"keep: {receipts: 7d}"}, "/keep/receipts not those of one lane"},
		{[]string{"expect: {freshWithin: soon}"}, "/expect/freshWithin Write a length of time such as"},
		{[]string{"expect: {freshwithin: 2h}"}, "/expect/freshwithin freshWithin"},
		{[]string{"expect: {doneBy: '7'}"}, "/expect/doneBy is not a time of day"},
		{[]string{"expect: {rows: -1}"}, "/expect/rows Write rows: usual"},
		{[]string{"expect: {rows: [1]}"}, "/expect/rows must be"},
		{[]string{"expect: {onTime: 100.5}"}, "/expect/onTime is not a percentage"},
		{[]string{"expect: {onTime: often}"}, "/expect/onTime must be a number"},
		{[]string{"expect: 2h"}, "/expect must be a mapping"},
		{[]string{"keep: [runs]"}, "/keep must be a mapping"},

		// URLs (context 3.14), which hold no secret
		{[]string{"url: /prices"}, "/url must begin with https://"},
		{[]string{"url: file:///etc/passwd"}, "/url must begin with https://"},
		{[]string{"url: 'https://'"}, "/url has no host"},
		{[]string{"url: 'https://a:b@x/'"}, "/url has a user name"},
		{[]string{"url: 'https://x/#a'"}, "/url has a fragment"},
		{[]string{"url: 'https://x/a b'"}, "/url not a URL"},
		{[]string{"url: 'https://x:port/'"}, "/url not a URL"},
		{[]string{"url: 'https://x/?api_key=abc'"}, "/url looks like a credential"},
		{[]string{"url: 'https://x/?key=${KEY}'"}, "/url is not replaced here"},
		{[]string{"url: https://x/" + strings.Repeat("a", 5000)}, "/url at most 4096"},
		{[]string{"params: [{name: apikey, value: abc}]"}, "/params/0/name provider file"},
		{[]string{"params: [{name: key, value: AIzaSyA1234567890}]"}, "/params/0/name provider file"},
		{[]string{"params: [{name: access_token, value: abc}]"}, "/params/0/name provider file"},
		{[]string{"params: [{name: a, value: '${X}'}]"}, "/params/0/value is not replaced here"},
		{[]string{"params: [{value: a}]"}, "/params/0/name name is missing"},
		{[]string{"params: {a: b}"}, "/params params must be a list"},
		{[]string{"params: [" + strings.Repeat("{name: a, value: b}, ", 101) + "]"}, "/params at most 100"},
		{[]string{"headers: [{name: authorization, value: Bearer x}]"}, "/headers/0/name provider file"},
		{[]string{"headers: [{name: X-API-Key, value: x}]"}, "/headers/0/name provider file"},
		{[]string{"headers: [{name: cookie, value: x}]"}, "/headers/0/name provider file"},
		{[]string{"headers: [{name: host, value: x}]"}, "/headers/0/name is set by Pawl"},
		{[]string{"headers: [{name: transfer-encoding, value: chunked}]"}, "/headers/0/name is set by Pawl"},
		{[]string{"headers: [{name: proxy-a, value: x}]"}, "/headers/0/name is set by Pawl"},
		{[]string{"headers: [{name: 'a b', value: x}]"}, "/headers/0/name is not the name of a header"},
		{[]string{`headers: [{name: A, value: "x\r\nHost: y"}]`}, "/headers/0/value without line breaks"},

		// tables and columns are whitelisted (context 3.15.6)
		{[]string{"table: 'a; drop table runs'"}, "/table is not a name for SQL"},
		{[]string{"table: 1a"}, "/table is not a name for SQL"},
		{[]string{"table: " + strings.Repeat("a", 64)}, "/table is not a name for SQL"},
		{[]string{"table: Runs"}, "/table is a table of Pawl itself"},
		{[]string{"table: _rejects"}, "/table is a table of Pawl itself"},
		{[]string{"table: PG_class"}, "/table begin with pg_"},
		{[]string{"table: sqlite_master"}, "/table begin with sqlite_"},
		{[]string{fields("{source: a, target: Created_At}")}, "/response/fields/0/target that Pawl or the database fills"},
		{[]string{fields("{source: a, target: ctid}")}, "/response/fields/0/target that Pawl or the database fills"},
		{[]string{fields("{source: a, target: 'a-b'}")}, "/response/fields/0/target is not a name for SQL"},
		{[]string{fields("{source: a, target: b}, {source: c, target: B}")}, "/response/fields/1/target is already that of fields[0]"},
		{[]string{fields("{source: a..b, target: b}")}, "/response/fields/0/source is not a path"},
		{[]string{fields("{source: '$.a[0]', target: b}")}, "/response/fields/0/source places in lists as numbers"},
		{[]string{fields("{source: a, target: b, type: int}")}, `/response/fields/0/type type "int" is not known`},
		{[]string{fields("")}, "/response/fields fields are missing"},
		{[]string{"response: {}"}, "/response/fields fields are missing"},
		{[]string{"response: {format: xml}"}, "/response/format is not known"},
		{[]string{"response: {format: csv, dataPath: a}"}, "/response/dataPath needs answers in the format json"},
		{[]string{"response: {maxPages: 0}"}, "/response/maxPages must be from 1"},
		{[]string{"response: {maxBytes: -1}"}, "/response/maxBytes must be from 1"},
		{[]string{"response: {errorWhen: {}}"}, "/response/errorWhen/path path is missing"},

		{[]string{"write: {mode: upsert}"}, "/write/key needs a key"},
		{[]string{"write: {mode: delete}"}, "/write/mode is not known"},
		{[]string{"write: {key: [ids]}"}, "/write/key/0 Did you mean id?"},
		{[]string{"write: {key: [id, id]}"}, "/write/key/1 twice"},
		{[]string{"write: {connection: a b}"}, "/write/connection is not the name of a connection"},

		{[]string{"execution: {timeout: 0}"}, "/execution/timeout must be from 1 to 86400"},
		{[]string{"execution: {timeout: soon}"}, "/execution/timeout neither a number of seconds"},
		{[]string{"execution: {timeout: 1.5}"}, "/execution/timeout must be a whole number"},
		{[]string{"execution: {timeout: 2d}"}, "/execution/timeout must be from 1 to 86400"},
		{[]string{"execution: {maxRetries: 0}"}, "/execution/maxRetries must be from 1"},
		{[]string{"execution: {retryResetPeriod: 1w}"}, "/execution/retryResetPeriod is not a length of time"},
		{[]string{"execution: {timeoutt: 1}"}, "/execution/timeoutt Did you mean timeout?"},

		{[]string{"schedule: dayly"}, "/schedule Did you mean daily?"},
		{[]string{"schedule: 30m"}, "/schedule Did you mean interval:30m?"},
		{[]string{"schedule: '0 9 * * *'"}, `/schedule Did you mean {cron: "0 9 * * *"}?`},
		{[]string{"schedule: 5"}, "/schedule must be daily"},
		{[]string{"schedule: interval:x"}, "/schedule/interval must be digits"},
		{[]string{"schedule: {interval: 5m, cron: '* * * * *'}"}, "/schedule keep one of the two"},
		{[]string{"schedule: {cron: '61 * * * *'}"}, "/schedule/cron 61"},
		{[]string{"schedule: {cron: '0 9 * * *', timezone: Europe/Berln}"}, "/schedule/timezone unknown time zone"},
		{[]string{"schedule: {interval: 5m, timezone: UTC}"}, "/schedule/timezone"},
		{[]string{"schedule: {interval: 5m, from: soon}"}, "/schedule/from is neither a date"},
		{[]string{"schedule: {interval: 5m, from: '2026-02-02', until: '2026-02-01'}"}, "/schedule/until lies before"},
		{[]string{"schedule: {cron: '61 * * * *', jitter: 5m}"}, "/schedule/cron 61"},
		{[]string{"schedule: {interval: 5m, cron: '* * * * *', jitter: 5m}"}, "/schedule/cron exclude each other"},
		{[]string{"schedule: {interval: 5m, except: ['2026-12-24', '2026-02-30']}"}, "/schedule/except/1 is not a date of the calendar"},
		{[]string{"schedule: {interval: 5m, except: ['calendar:a b']}"}, "/schedule/except/0 names no calendar"},
		{[]string{"schedule: {interval: 5m, except: x}"}, "/schedule/except"},
		{[]string{"schedule: {interval: 5m, jitter: 48h}"}, "/schedule/jitter too long"},
		{[]string{"schedule: {interval: 5m, missed: all}"}, "/schedule/missed"},
		{[]string{"schedule: {interval: 5m, missed: {policy: some}}"}, "/schedule/missed/policy"},
		{[]string{"schedule: {interval: 5m, missed: {within: 1h}}"}, "/schedule/missed/policy"},
		{[]string{"schedule: {interval: 5m, missed: {policy: all, within: 800d}}"}, "/schedule/missed/within at most a year"},
		{[]string{"schedule: {interval: 5m, timezone: Europe/Berln, from: '2026-01-01'}"}, "/schedule/timezone unknown time zone"},

		// the pagination blocks exclude each other (context 3.14)
		{[]string{"offsetPagination: {pageParam: a}", "cursorPagination: {cursorParam: a, nextCursorPath: b}"}, "/cursorPagination exclude each other"},
		{[]string{"linkPagination: {header: Link}", "cursorPagination: {cursorParam: a, nextCursorPath: b}"}, "/linkPagination exclude each other"},
		{[]string{"offsetPagination: {}"}, "/offsetPagination/pageParam is missing"},
		{[]string{"offsetPagination: {pageParam: a, offsetParam: b}"}, "/offsetPagination/offsetParam exclude each other"},
		{[]string{"offsetPagination: {pageParam: a, limit: 0}"}, "/offsetPagination/limit must be from 1"},
		{[]string{"offsetPagination: {pageParam: a, firstPage: -1}"}, "/offsetPagination/firstPage must be from 0"},
		{[]string{"cursorPagination: {cursorParam: a}"}, "/cursorPagination/nextCursorPath is missing"},
		{[]string{"cursorPagination: {cursorParam: a, nextCursorPath: b, limit: 5}"}, "/cursorPagination/limit needs limitParam"},
		{[]string{"response: {format: ndjson, fields: [{source: a, target: b}]}", "cursorPagination: {cursorParam: a, nextCursorPath: b}"}, "/cursorPagination/nextCursorPath needs answers"},
		{[]string{"linkPagination: {}"}, "/linkPagination header or nextPath is missing"},
		{[]string{"linkPagination: {header: Link, nextPath: a}"}, "/linkPagination/nextPath exclude each other"},

		{[]string{"incremental: {param: a}"}, "/incremental/cursorPath is missing"},
		{[]string{"incremental: {param: a, cursorPath: b, lookback: x}"}, "/incremental/lookback is not a length of time"},
		{[]string{"incremental: {param: a, cursorPath: b}", "write: {mode: replace}"}, "/incremental keep one of them"},
		{[]string{"publish: {workflow: a}"}, "/publish/topic is missing"},
		{[]string{"publish: {workflow: a b, topic: c}"}, "/publish/workflow is not a name"},
	} {
		_, err := Parse("x", []byte(change(test.lines...)))
		e, _ := errors.AsType[*pawl.Error](err)
		pointer, message, _ := strings.Cut(test.want, " ")
		if strings.HasPrefix(test.want, "/labels/a b ") {
			pointer, message = "/labels/a b", "is not a name for a label"
		}
		if e == nil || !slices.ContainsFunc(e.Fields, func(f pawl.Field) bool {
			return f.Pointer == pointer && strings.Contains(f.String(), message) && strings.HasPrefix(f.String(), "x:")
		}) {
			t.Errorf("%q: %v, want %q", test.lines, err, test.want)
		}
	}
}

func TestWhatLooksOddIsAllowed(t *testing.T) {
	for _, lines := range [][]string{
		{"name: 0a.b_c-d"},
		{"url: 'http://127.0.0.1:8080/a?b=c&pageToken=d'"},
		{"params: [{name: key, value: AAPL}, {name: key, value: MSFT}, {name: empty}]"},
		{"params: [{name: next_token, value: a}, {name: tokens, value: 5}]"},
		{"response: {format: csv, fields: [{source: 'Close / Last ($)', target: close}]}"},
		{"response: {raw: true}"},
		{"response: {dataPath: ., fields: [{source: a.0.b, target: b}]}"},
		{"offsetPagination: {offsetParam: skip}"},
		{"linkPagination: {nextPath: links.next}"},
		{"cursorPagination: {cursorParam: after, nextCursorPath: meta.after, limitParam: first}"},
		{"write: {mode: replace}"},
		{"execution:"},
	} {
		if _, err := Parse("x", []byte(change(lines...))); err != nil {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

func TestFieldsAreBounded(t *testing.T) {
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{source: a%d, target: a%d, type: text, required: false},", i, i)
		}
		return change(fields(b.String()))
	}
	if _, err := Parse("x", []byte(list(500))); err != nil {
		t.Error(err)
	}
	if _, err := Parse("x", []byte(list(500+1))); err == nil {
		t.Error("too many fields are read")
	}
}

// Messages are shown and logged: what may be a secret is not in them.
func TestFaultsTellNoSecrets(t *testing.T) {
	for _, line := range []string{
		"url: 'https://me:hunter2@x/'", "url: 'https://x/?password=hunter2'", "url: 'https://x/ hunter2'", "url: 'hunter2://x/'",
		"params: [{name: password, value: hunter2}]", "headers: [{name: Authorization, value: hunter2}]", `headers: [{name: a, value: "hunter2\n"}]`,
	} {
		_, err := Parse("x", []byte(change(line)))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A source must never write to a table of Pawl itself.
func TestOwnTablesAreThoseOfTheMigrations(t *testing.T) {
	files, err := filepath.Glob("../../store/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no migrations", err)
	}
	found := []string{"schema_migrations"} // which is made before them
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?mi)^\s*create table (?:if not exists )?(\w+)`).FindAllSubmatch(text, -1) {
			found = append(found, string(match[1]))
		}
	}
	for _, table := range found {
		if !slices.Contains(ownTables(), table) {
			t.Errorf("%s is not among the tables that a source cannot have", table)
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d tables were found in the migrations", len(found))
	}
}
