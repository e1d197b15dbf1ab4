package sqltool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// What a script could try in order to write while it prepares (context 3.3).
func TestQueryCannotWrite(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, customers)
		d := open(t, url)
		for _, sql := range []string{
			"insert into customers (id, name) values (1, 'Ann')",
			"with x as (select 1) insert into customers (id, name) values (1, 'Ann')",
			"with x as (insert into customers (id, name) values (1, 'Ann') returning id) select * from x",
			"select 1; insert into customers (id, name) values (1, 'Ann')",
			"select 1; commit; insert into customers (id, name) values (1, 'Ann')",
			"/* select */ delete from customers",
			"-- select\ndelete from customers",
			"explain analyze insert into customers (id, name) values (1, 'Ann')",
			"drop table customers",
			"commit", "rollback", "end", "; ;commit", "(commit)",
			"set transaction read write", "set session characteristics as transaction read write",
			"begin", "savepoint s", "prepare p as select 1", "execute p", "deallocate all", "discard all",
			"pragma query_only = 0", "explain pragma query_only = 0", "explain query plan pragma query_only = 0",
			"copy customers to stdout", "listen x", "vacuum", "do $$begin end$$",
			"select * into other from customers",
			"", ";", "--", "/*", "'select'", "1",
		} {
			e := fail(t, d, callOf(t, "query", "", sql))
			if e.Class != pawl.ClassLogic || !e.NotApplied {
				t.Errorf("query(%q) fails with %s, %s, %v: %v", sql, e.Class, e.Code, e.NotApplied, e)
			}
		}
		same(t, []any{}, query(t, d, "select * from customers"))
	})
}

func TestQueryOnPostgreSQLCannotBecomeAWrite(t *testing.T) {
	url := pgtest.URL(t)
	setUp(t, url, customers, "create sequence s",
		"create function sneak() returns int language plpgsql as $$begin insert into customers (id, name) values (1, 'Ann'); return 1; end$$",
		"create function unlocked() returns int language plpgsql set transaction_read_only = off as $$begin insert into customers (id, name) values (1, 'Ann'); return 1; end$$",
	)
	d := open(t, url)
	for _, sql := range []string{
		"/* /* */ select 1", "select sneak()", "select unlocked()", "select nextval('s')", "select set_config('transaction_read_only', 'off', false)",
		"with x as materialized (select set_config('transaction_read_only', 'off', true)) select sneak() from x",
		"explain (analyze) insert into customers (id, name) values (1, 'Ann')",
	} {
		if e := fail(t, d, callOf(t, "query", "", sql)); e.Class != pawl.ClassLogic {
			t.Errorf("query(%q) fails with %s, %s: %v", sql, e.Class, e.Code, e)
		}
	}
	same(t, []any{}, query(t, d, "select * from customers"))
	same(t, []any{object{"is_called": false}}, query(t, d, "select is_called from s"))
}

func TestExecIsOneStatementThatCannotEndItsTransaction(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, customers)
		d := open(t, url)
		for _, sql := range []string{
			"insert into customers (id, name) values (1, 'Ann'); insert into customers (id, name) values (2, 'Bob')",
			"insert into customers (id, name) values (1, 'Ann');;/**/ commit",
			"commit", "rollback", "end", "abort", "begin", "start transaction", "prepare transaction 'x'", "savepoint s", "release s",
			"set role postgres", "reset all", "vacuum", "vacuum into 'x'", "attach 'x' as x", "detach main", "pragma journal_mode = off",
			"copy customers from program 'true'", "load 'x'", "discard all",
		} {
			if e := fail(t, d, callOf(t, "exec", "k", sql)); e.Class != pawl.ClassLogic || !e.NotApplied {
				t.Errorf("exec(%q) fails with %s, %s, %v: %v", sql, e.Class, e.Code, e.NotApplied, e)
			}
		}
		same(t, []any{}, query(t, d, "select * from customers"))
		same(t, []any{}, query(t, d, "select * from pawl_calls"))
	})
}

func TestProceduresCannotEndTheTransaction(t *testing.T) {
	url := pgtest.URL(t)
	setUp(t, url, customers, "create procedure p() language plpgsql as $$begin insert into customers (id, name) values (1, 'Ann'); commit; end$$")
	d := open(t, url)
	for _, sql := range []string{"call p()", "do $$begin insert into customers (id, name) values (1, 'Ann'); commit; end$$"} {
		if e := fail(t, d, callOf(t, "exec", "k", sql)); e.Class != pawl.ClassLogic || !e.NotApplied {
			t.Errorf("exec(%q) fails with %s, %s, %v: %v", sql, e.Class, e.Code, e.NotApplied, e)
		}
	}
	same(t, []any{}, query(t, d, "select * from customers"))
}

func TestAStatementCannotTakeItsRecordAway(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		d := open(t, url)
		for _, sql := range []string{"delete from pawl_calls", "update pawl_calls set key = 'other'", "update pawl_calls set result = '{}'"} {
			checkFault(t, fail(t, d, callOf(t, "exec", "k", sql)), pawl.ClassLogic, "record_lost")
		}
		same(t, []any{}, query(t, d, "select * from pawl_calls"))
	})
}

func TestSQLiteCannotReachOtherFiles(t *testing.T) {
	url := liteURL(t)
	d := open(t, url)
	dir := filepath.Dir(strings.TrimPrefix(url, "sqlite:"))
	other := filepath.Join(dir, "other.db")
	// Past the words, as if one had got through.
	for _, writes := range []bool{false, true} {
		tx, err := d.engine.begin(t.Context(), writes)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{"attach '" + other + "' as other", "vacuum into '" + other + "'", "select load_extension('x')", "pragma writable_schema = 1; update sqlite_schema set sql = ''"} {
			_, _ = tx.run(t.Context(), statement{sql: sql}, d.limit)
		}
		tx.close(t.Context())
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("another file was made")
	}
	if saw, err := d.Test(t.Context()); err != nil {
		t.Errorf("the database was damaged: %s, %v", saw, err)
	}
}

func TestLongStatementsEndInTime(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, customers)
		d := open(t, url, "timeout: 1s", "maxRows: 10")
		const slow = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000000) "
		for name, sql := range map[string]string{
			"before the first row": slow + "select count(*) as n from n",
			"after the first row":  slow + "select i from n where i = 1 or i = 999999999",
		} {
			begun := time.Now()
			checkFault(t, fail(t, d, callOf(t, "query", "", sql)), pawl.ClassTransient, "timeout")
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%s: it took %s", name, took)
			}
		}
		checkFault(t, fail(t, d, callOf(t, "exec", "k", "insert into customers (id, name) "+slow+"select max(i), 'x' from n")), pawl.ClassTransient, "timeout")
		same(t, []any{}, query(t, d, "select * from customers"))
	})
}

func TestCancelledCallsAreUndone(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		d := open(t, url)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		checkFault(t, failIn(t, ctx, d, callOf(t, "exec", "k", customers)), pawl.ClassTransient, "interrupted")
		checkFault(t, failIn(t, ctx, d, callOf(t, "query", "", "select 1 as one")), pawl.ClassTransient, "interrupted")
	})
}
