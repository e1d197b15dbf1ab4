package sqltool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const customers = "create table customers (id integer primary key, name text not null, vip boolean)"

func TestQueryAnswersObjectsInTheOrderOfTheRows(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, customers, "insert into customers values (1, 'Ann', true), (2, 'Bob', false), (3, 'Cem', null)")
		d := open(t, url)
		raw, err := d.Call(t.Context(), callOf(t, "query", "", "select name, id, vip from customers where id >= $2 and name <> $1 order by id desc; -- all", "Bob", 1))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"columns":["name","id","vip"],"rows":[{"name":"Cem","id":3,"vip":null},{"name":"Ann","id":1,"vip":true}],"truncated":false}`
		if string(raw) != want {
			t.Errorf("query answers\n%s, want\n%s", raw, want)
		}
		empty := do(t, d, callOf(t, "query", "", "select id from customers where id = 99"))
		same(t, object{"columns": []any{"id"}, "rows": []any{}, "truncated": false}, empty)
	})
}

func TestExecChangesAndReturnsRows(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		d := open(t, url)
		same(t, object{"rowsAffected": 0.0, "rows": []any{}, "truncated": false}, do(t, d, callOf(t, "exec", "k1", customers)))
		same(t, object{"rowsAffected": 2.0, "rows": []any{object{"id": 1.0, "name": "Ann"}, object{"id": 2.0, "name": "Bob"}}, "truncated": false},
			do(t, d, callOf(t, "exec", "k2", "insert into customers (id, name) values ($1, $2), ($3, $4) returning id, name", 1, "Ann", 2, "Bob")))
		same(t, 1.0, do(t, d, callOf(t, "exec", "k3", "update customers set vip = $1 where id = $2", true, 2))["rowsAffected"])
		same(t, 0.0, do(t, d, callOf(t, "exec", "k4", "update customers set vip = $1 where id = $2", true, 9))["rowsAffected"])
		same(t, 0.0, do(t, d, callOf(t, "exec", "k5", "create index by_name on customers (name)"))["rowsAffected"])
		same(t, 1.0, do(t, d, callOf(t, "exec", "k6", "with gone as (select 1 as id) delete from customers where id in (select id from gone)"))["rowsAffected"])
		same(t, []any{object{"id": 2.0, "name": "Bob", "vip": true}}, query(t, d, "select * from customers"))
	})
}

func TestResultsAreCutAtMaxRows(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, "create table n (i integer)")
		d := open(t, url, "maxRows: 3")
		for rows, truncated := range map[int]bool{2: false, 3: false, 4: true} {
			result := do(t, d, callOf(t, "query", "", "with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) select i from n", rows))
			if got := len(result["rows"].([]any)); got != min(rows, 3) || result["truncated"] != truncated {
				t.Errorf("%d rows: %d rows answered, truncated %v", rows, got, result["truncated"])
			}
		}
		// Endless, but nobody asks for the rest.
		endless := do(t, d, callOf(t, "query", "", "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"))
		same(t, true, endless["truncated"])
		// exec does all of it, and answers the beginning.
		all := do(t, d, callOf(t, "exec", "k", "insert into n select value from (select 1 as value union all select 2 union all select 3 union all select 4) as v returning i"))
		same(t, 4.0, all["rowsAffected"])
		same(t, true, all["truncated"])
		same(t, 3, len(all["rows"].([]any)))
		same(t, []any{object{"n": 4.0}}, query(t, d, "select count(*) as n from n"))
	})
}

func TestResultsAreCutBeforeTheyAreTooLarge(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, "create table texts (t text)")
		d := open(t, url)
		text := strings.Repeat("x", 1<<20)
		for i := range 6 {
			do(t, d, callOf(t, "exec", fmt.Sprint("k", i), "insert into texts values ($1)", text))
		}
		result := do(t, d, callOf(t, "query", "", "select t from texts"))
		if n := len(result["rows"].([]any)); n != 3 || result["truncated"] != true {
			t.Errorf("%d rows, truncated %v; want as many as 4 MiB hold", n, result["truncated"])
		}
		checkFault(t, fail(t, d, callOf(t, "query", "", "select replace(t, 'x', 'xxxxx') as t from texts limit 1")), pawl.ClassLogic, "too_large")
		checkFault(t, fail(t, d, callOf(t, "exec", "big", "update texts set t = replace(t, 'x', 'xxxxx') returning t")), pawl.ClassLogic, "too_large")
		same(t, []any{object{"n": float64(1 << 20)}}, query(t, d, "select max(length(t)) as n from texts"))
	})
}

func TestReadOnlyConnectionsHaveNoExec(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, customers)
		d := open(t, url, "readOnly: true")
		same(t, []connector.Method{{Name: "query"}}, d.Methods())
		checkFault(t, fail(t, d, callOf(t, "exec", "k", "delete from customers")), pawl.ClassLogic, "unknown_method")
		checkFault(t, fail(t, d, callOf(t, "insert", "k", "delete from customers")), pawl.ClassLogic, "unknown_method")
		same(t, []any{}, query(t, d, "select 1 from "+map[bool]string{true: "sqlite_schema where name", false: "pg_tables where tablename"}[strings.HasPrefix(url, "sqlite")]+" = 'pawl_calls'"))
	})
}

func TestMethodsSayWhatCanBeReconciled(t *testing.T) {
	for line, want := range map[string]bool{"track: true": true, "track: false": false} {
		d := open(t, liteURL(t), line)
		same(t, []connector.Method{{Name: "query"}, {Name: "exec", Mutation: true, Reconciles: want}}, d.Methods())
	}
}

func TestTwoColumnsOfOneNameAreRefused(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, customers)
		d := open(t, url)
		checkFault(t, fail(t, d, callOf(t, "query", "", "select 1 as id, 2 as id")), pawl.ClassLogic, connector.CodeBadArguments)
		checkFault(t, fail(t, d, callOf(t, "exec", "k", "insert into customers (id, name) values (1, 'Ann') returning id, id")), pawl.ClassLogic, connector.CodeBadArguments)
		same(t, []any{}, query(t, d, "select id from customers"))
	})
}

func TestArgumentsAreChecked(t *testing.T) {
	d := open(t, liteURL(t))
	for args, want := range map[string]string{
		``:                                 "sql is missing",
		`{}`:                               "sql is missing",
		`{"sql": " \n"}`:                   "sql is missing",
		`{"sql": "select\u0000 1"}`:        "sql has a zero character in it",
		`{"query": "select 1"}`:            `unknown argument "query"`,
		`{"sql": 1}`:                       "sql cannot be a JSON number",
		`{"sql": "select 1", "params": 1}`: "params cannot be a JSON number",
		`{"sql": "select $1", "params": [` + strings.Repeat("1,", mostParams) + `1]}`: "there are 10001 params, more than the 10000 allowed",
	} {
		e := fail(t, d, connector.Call{Method: "query", Args: json.RawMessage(args)})
		if checkFault(t, e, pawl.ClassLogic, connector.CodeBadArguments); e.Msg != want {
			t.Errorf("%.60s is told %q, want %q", args, e.Msg, want)
		}
	}
}

func TestTestSaysWhoAnswers(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		var tester connector.Tester = open(t, url)
		saw, err := tester.Test(t.Context())
		if err != nil || !strings.Contains(saw, "PostgreSQL ") && !strings.Contains(saw, "SQLite ") {
			t.Errorf("Test saw %q, %v", saw, err)
		}
	})
}
