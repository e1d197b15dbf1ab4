package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bothLites are a database in memory as the driver has it, and as simulations do.
func bothLites(t *testing.T) map[string]conn {
	t.Helper()
	db, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	direct, err := openDirectLite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(direct.close)
	return map[string]conn{"driver": newLiteConn(c), "direct": direct}
}

// What a simulation writes and reads is what the driver writes and reads.
func TestSimulationsReadAsTheDriver(t *testing.T) {
	type kind string
	type row struct {
		ID             int64
		Text           string
		Null, Set      *string
		Number, Absent *int64
		Float          float64
		Truth          bool
		Bytes          []byte
		Kind           kind
		Any            any
	}
	text, number := "ÄÖÜ\n'\"", int64(-1<<62)
	got := map[string][]row{}
	said := map[string][]string{}
	for name, c := range bothLites(t) {
		ctx := t.Context()
		note := func(what string, n int64, err error) {
			if unique := classifySQLite(err) == errorUnique; err != nil {
				said[name] = append(said[name], fmt.Sprint(what, ": refused, unique: ", unique, ", an answer: ", Refused(err)))
				return
			}
			said[name] = append(said[name], fmt.Sprint(what, ": ", n))
		}
		n, err := c.exec(ctx, `create table p (id bigint primary key); -- of c
			create table c (id bigint primary key, a text, b text, c text, d bigint, e bigint, f real, g bigint, h blob, k text, m, p bigint references p (id));`, nil)
		note("script", 0*n, err)
		for i, args := range [][]any{
			{1, "", nil, &text, &number, (*int64)(nil), 1.5, true, []byte{0, 1, 255}, kind("k"), "any", nil},
			{int64(2), strings.Repeat("x", 100_000), (*string)(nil), "", -1, nil, 0.0, false, []byte("y"), kind(""), 7, nil},
			{3, "z", nil, nil, nil, nil, 2, 1, []byte(nil), "k", nil, nil},
			{3, "again", nil, nil, nil, nil, 2, 1, nil, "k", nil, nil},
			{4, "of nobody", nil, nil, nil, nil, 2, 1, nil, "k", nil, 99},
		} {
			n, err := c.exec(ctx, `insert into c values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, args)
			note(fmt.Sprint("row ", i), n, err)
		}
		n, err = c.exec(ctx, `update c set p = null where a <> $2 and id >= $1`, []any{1, "z"})
		note("update", n, err)
		n, err = c.exec(ctx, `update c set g = ? where id = ? or id = ?`, []any{1, 1, 3})
		note("by place", n, err)
		_, err = c.query(ctx, `select nothing from nowhere`, nil)
		note("nonsense", 0, err)
		rows, err := c.query(ctx, `select id, a, b, c, d, e, f, g, h, k, m from c where $1 = $1 order by id limit $2`, []any{"x", 10})
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var r row
			if err := rows.Scan(&r.ID, &r.Text, &r.Null, &r.Set, &r.Number, &r.Absent, &r.Float, &r.Truth, &r.Bytes, &r.Kind, &r.Any); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got[name] = append(got[name], r)
		}
		rows.Close()
		var id int64
		note("null as a number", 0, Row{rows: mustQuery(t, c, `select null`)}.Scan(&id))
		note("a text as a number", 0, Row{rows: mustQuery(t, c, `select 'x'`)}.Scan(&id))
		note("nothing", 0, Row{rows: mustQuery(t, c, `select 1 where false`)}.Scan(&id))
	}
	if diff := cmp.Diff(got["driver"], got["direct"]); diff != "" || len(got["direct"]) != 3 {
		t.Errorf("%d rows (-driver +direct):\n%s", len(got["direct"]), diff)
	}
	if diff := cmp.Diff(said["driver"], said["direct"]); diff != "" {
		t.Errorf("(-driver +direct):\n%s", diff)
	}
}

func mustQuery(t *testing.T, c conn, text string) Rows {
	t.Helper()
	rows, err := c.query(t.Context(), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
