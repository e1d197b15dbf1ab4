package sqltool

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// valueOf is the JSON of the one value v of a query.
func valueOf(t *testing.T, d *Database, sql string, params ...any) string {
	t.Helper()
	raw, err := d.Call(t.Context(), callOf(t, "query", "", sql, params...))
	if err != nil {
		t.Fatalf("query(%s): %v", sql, err)
	}
	var result struct {
		Rows []struct {
			V json.RawMessage `json:"v"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Rows) != 1 {
		t.Fatalf("query(%s) = %s, %v", sql, raw, err)
	}
	return string(result.Rows[0].V)
}

func TestPostgreSQLValuesBecomeJSON(t *testing.T) {
	url := pgtest.URL(t)
	setUp(t, url, "create type mood as enum ('sad', 'happy')", "create domain small as int check (value < 10)")
	d := open(t, url)
	for value, want := range map[string]string{
		"null": "null", "true": "true", "false": "false",
		"1::int2": "1", "-2::int4": "-2", "9007199254740991": "9007199254740991", "9007199254740992": `"9007199254740992"`, "-9223372036854775808": `"-9223372036854775808"`,
		"'9'::small": "9", "4294967295::oid": "4294967295",
		"1.5::float4": "1.5", "0.1::float8": "0.1", "1e300::float8": "1e+300", "'NaN'::float8": `"NaN"`, "'-Infinity'::float4": `"-Infinity"`,
		"12.50": "12.5", "0.1::numeric": "0.1", "123456789012345::numeric": "123456789012345", "1234567890123456::numeric": `"1234567890123456"`,
		"0.1234567890123456": `"0.1234567890123456"`, "'NaN'::numeric": `"NaN"`, "-0.00": "0",
		"'a\"ü'": `"a\"ü"`, "'x'::char(3)": `"x  "`, "'happy'::mood": `"happy"`, "''": `""`,
		"'\\xdeadbeef'::bytea": `"3q2+7w=="`, "''::bytea": `""`,
		`'{"b": [1, null], "a": 10000000000000000000001}'::json`: `{"b":[1,null],"a":10000000000000000000001}`,
		`'{"b": 1, "a": "x"}'::jsonb`:                            `{"a":"x","b":1}`,
		`'"text"'::jsonb`:                                        `"text"`, "'null'::jsonb": "null",
		"'2026-01-02 03:04:05.678901+02'::timestamptz": `"2026-01-02T01:04:05.678901Z"`,
		"'2026-01-02 03:04:05'::timestamp":             `"2026-01-02T03:04:05"`,
		"'infinity'::timestamptz":                      `"infinity"`, "'0044-03-15 12:00 BC'::timestamp": `"0044-03-15 12:00:00 BC"`,
		"'2026-01-02'::date": `"2026-01-02"`, "'03:04:05'::time": `"03:04:05"`, "'1 year 2 days 03:00'::interval": `"P1Y2DT3H"`,
		"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid": `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, "'10.0.0.1'::inet": `"10.0.0.1"`,
		"array[1, null, 3]": "[1,null,3]", "'{}'::int[]": "[]", "array[[1, 2], [3, 4]]": "[[1,2],[3,4]]", "'[2:3]={1,2}'::int[]": "[1,2]",
		`array['a,b', 'c"d', 'e\f', '', 'NULL', null]`: `["a,b","c\"d","e\\f","","NULL",null]`,
		"array[true, false]":                           "[true,false]", "array[1.5, 0.1234567890123456]": `[1.5,"0.1234567890123456"]`,
		`array['{"a": [1]}'::jsonb]`: `[{"a":[1]}]`, "array['\\x00'::bytea]": `["AA=="]`,
		"array['2026-01-02 03:04:05+00'::timestamptz]": `["2026-01-02T03:04:05Z"]`,
		"array['happy'::mood]":                         `"{happy}"`, // a type of this server: a text
		"row(1, 'a')":                                  `"(1,a)"`,
	} {
		if got := valueOf(t, d, "select "+value+" as v"); got != want {
			t.Errorf("%s becomes %s, want %s", value, got, want)
		}
	}
}

func TestPostgreSQLParametersAreConvertedByTheServer(t *testing.T) {
	d := open(t, pgtest.URL(t))
	for _, test := range []struct {
		sql    string
		params []any
		want   string
	}{
		{"select $1::int + 1 as v", []any{41}, "42"},
		{"select $1::int + 1 as v", []any{"41"}, "42"},
		{"select $1::numeric as v", []any{0.1}, "0.1"},
		{"select $1::bigint::text as v", []any{"9223372036854775807"}, `"9223372036854775807"`},
		{"select $1 as v", []any{"it's"}, `"it's"`},
		{"select $1::text is null as v", []any{nil}, "true"},
		{"select not $1 as v", []any{true}, "false"},
		{"select $1::timestamptz as v", []any{"2026-01-02T03:04:05.678Z"}, `"2026-01-02T03:04:05.678Z"`},
		{"select $1::bytea as v", []any{"\\x00ff"}, `"AP8="`},
		{"select $1::jsonb -> 'a' as v", []any{object{"a": []any{1, "x"}}}, `[1,"x"]`},
		{"select $1::jsonb -> 1 as v", []any{[]any{1, object{"b": nil}}}, `{"b":null}`},
		{"select $1::jsonb as v", []any{`{"a":1}`}, `{"a":1}`},
		{"select $1::int[] as v", []any{[]any{1, nil, 3}}, "[1,null,3]"},
		{"select $1::text[] as v", []any{[]any{`a,"b`, `c\d`, "NULL", "", nil, "{}"}}, `["a,\"b","c\\d","NULL","",null,"{}"]`},
		{"select $1::int[] as v", []any{[]any{[]any{1, 2}, []any{3, 4}}}, "[[1,2],[3,4]]"},
		{"select $1::int[] as v", []any{[]any{}}, "[]"},
		{"select $1::jsonb[] as v", []any{[]any{object{"a": "x"}}}, `[{"a":"x"}]`},
		{"select 2 = any($1) as v", []any{[]any{1, 2}}, "true"},
		{"select $2 || $1 as v", []any{"a", "b"}, `"ba"`},
	} {
		if got := valueOf(t, d, test.sql, test.params...); got != test.want {
			t.Errorf("%s with %v is %s, want %s", test.sql, test.params, got, test.want)
		}
	}
	for _, params := range [][]any{nil, {1, 2}, {"x"}, {[]any{1}}} {
		if e := fail(t, d, callOf(t, "query", "", "select $1::int as v", params...)); e.Class != pawl.ClassLogic {
			t.Errorf("params %v fail with %s: %v", params, e.Class, e)
		}
	}
}

func TestSQLiteValuesBecomeJSON(t *testing.T) {
	url := liteURL(t)
	setUp(t, url, "create table t (b boolean, j json, d date, at datetime, ts timestamp, n numeric)")
	d := open(t, url)
	for value, want := range map[string]string{
		"null": "null", "1": "1", "-2": "-2", "9007199254740992": `"9007199254740992"`, "true": "1",
		"0.1": "0.1", "1e300": "1e+300", "9e999": `"Infinity"`, "'a\"ü'": `"a\"ü"`, "x'deadbeef'": `"3q2+7w=="`, "json('[1]')": `"[1]"`,
	} {
		if got := valueOf(t, d, "select "+value+" as v"); got != want {
			t.Errorf("%s becomes %s, want %s", value, got, want)
		}
	}
	do(t, d, callOf(t, "exec", "k", "insert into t values (1, $1, '2026-01-02', '2026-01-02 03:04:05', '2026-01-02T03:04:05.678+02:00', 12.5)", object{"a": []any{1, nil}}))
	for column, want := range map[string]string{
		"b": "true", "j": `{"a":[1,null]}`, "d": `"2026-01-02"`, "at": `"2026-01-02T03:04:05Z"`, "ts": `"2026-01-02T01:04:05.678Z"`, "n": "12.5",
	} {
		if got := valueOf(t, d, "select "+column+" as v from t"); got != want {
			t.Errorf("column %s is %s, want %s", column, got, want)
		}
	}
	do(t, d, callOf(t, "exec", "k2", "update t set b = 7, j = 'no json', d = 'someday'"))
	for column, want := range map[string]string{"b": "7", "j": `"no json"`, "d": `"someday"`} {
		if got := valueOf(t, d, "select "+column+" as v from t"); got != want {
			t.Errorf("column %s is %s, want %s", column, got, want)
		}
	}
}

func TestSQLiteParameters(t *testing.T) {
	d := open(t, liteURL(t))
	for _, test := range []struct {
		sql    string
		params []any
		want   string
	}{
		{"select $1 + 1 as v", []any{41}, "42"},
		{"select typeof($1) as v", []any{41}, `"integer"`},
		{"select typeof($1) as v", []any{0.5}, `"real"`},
		{"select typeof($1) as v", []any{"x"}, `"text"`},
		{"select typeof($1) as v", []any{nil}, `"null"`},
		{"select $1 as v", []any{json.RawMessage("9223372036854775807")}, `"9223372036854775807"`},
		{"select $1 as v", []any{json.RawMessage("1e400")}, `"Infinity"`},
		{"select $1 || $2 as v", []any{true, false}, `"10"`},
		{"select $2 || $1 as v", []any{"a", "b"}, `"ba"`},
		{"select json_extract($1, '$.a[1]') as v", []any{object{"a": []any{1, "x"}}}, `"x"`},
		{"select count(*) as v from json_each($1)", []any{[]any{1, 2, 3}}, "3"},
	} {
		if got := valueOf(t, d, test.sql, test.params...); got != test.want {
			t.Errorf("%s with %v is %s, want %s", test.sql, test.params, got, test.want)
		}
	}
	checkFault(t, fail(t, d, callOf(t, "query", "", "select $1 as v", 1, 2)), pawl.ClassLogic, connector.CodeBadArguments)
}
