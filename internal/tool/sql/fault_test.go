package sqltool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// raise is a statement that fails with an SQLSTATE.
func raise(code string) string {
	return fmt.Sprintf("do $$begin raise exception using errcode = '%s', message = 'so there', hint = 'look'; end$$", code)
}

// context 3.8: the class comes from the code, where the error arises.
func TestPostgreSQLErrorsHaveTheirClass(t *testing.T) {
	address := pgtest.URL(t)
	setUp(t, address, customers)
	d := open(t, address)
	for _, test := range []struct {
		sql   string
		class pawl.Class
		code  string
	}{
		{"select from where", pawl.ClassLogic, "bad_sql"},
		{"insert into nowhere values (1)", pawl.ClassPrecondition, "no_table"},
		{"insert into no.where values (1)", pawl.ClassPrecondition, "no_table"},
		{"update customers set age = 1", pawl.ClassPrecondition, "no_column"},
		{"select no_function()", pawl.ClassLogic, "bad_sql"},
		{"select 1 / 0", pawl.ClassLogic, "bad_value"},
		{"insert into customers (id) values (1)", pawl.ClassLogic, "constraint"},
		{"create database other", pawl.ClassLogic, "bad_sql"},
		{raise("42501"), pawl.ClassPermission, "no_access"},
		{raise("28P01"), pawl.ClassAuth, "auth"},
		{raise("40001"), pawl.ClassTransient, "busy"},
		{raise("40P01"), pawl.ClassTransient, "busy"},
		{raise("55P03"), pawl.ClassTransient, "busy"},
		{raise("57014"), pawl.ClassTransient, "timeout"},
		{raise("53300"), pawl.ClassTransient, "unavailable"},
		{raise("57P03"), pawl.ClassTransient, "unavailable"},
		{raise("08006"), pawl.ClassTransient, "unavailable"},
		{raise("XX000"), pawl.ClassTransient, "unavailable"},
		{raise("25006"), pawl.ClassPrecondition, "no_writes"},
		{raise("3D000"), pawl.ClassPrecondition, "no_database"},
		{raise("P0001"), pawl.ClassLogic, "bad_sql"},
		{raise("ZZZZZ"), pawl.ClassLogic, "bad_sql"},
	} {
		e := fail(t, d, callOf(t, "exec", "k", test.sql))
		if checkFault(t, e, test.class, test.code); !strings.HasPrefix(e.Msg, "crm (") || !strings.Contains(e.Msg, "SQLSTATE") {
			t.Errorf("exec(%s) is told %q", test.sql, e.Msg)
		}
	}
	same(t, []any{}, query(t, d, "select * from pawl_calls"))
}

func TestAnErrorOfTheCommitUndoesTheCall(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, "create table parent (id integer primary key)", "create table child (p integer references parent (id) deferrable initially deferred)")
		d := open(t, url)
		call := callOf(t, "exec", "k", "insert into child values (1)")
		checkFault(t, fail(t, d, call), pawl.ClassLogic, "constraint")
		same(t, []any{}, query(t, d, "select * from child"))
		same(t, connector.NotApplied, reconcile(t, d, call).State)
	})
}

func TestOnlySomeErrorsOfACommitSayThatNothingHappened(t *testing.T) {
	for _, test := range []struct {
		severity, code string
		want           bool
	}{
		{"ERROR", "23503", true}, {"ERROR", "40001", true}, {"ERROR", "P0001", true}, {"ERROR", "22012", true},
		{"FATAL", "23503", false}, {"PANIC", "23503", false}, {"", "23503", false},
		{"ERROR", "40003", false}, {"ERROR", "08007", false}, {"FATAL", "57P01", false}, {"ERROR", "57014", false},
		{"ERROR", "58030", false}, {"ERROR", "XX000", false}, {"ERROR", "53100", false},
	} {
		if got := undone(&pgconn.PgError{SeverityUnlocalized: test.severity, Code: test.code}); got != test.want {
			t.Errorf("%s %s: undone %v", test.severity, test.code, got)
		}
		e := postgresFaults{}.committing(t.Context(), &pgconn.PgError{SeverityUnlocalized: test.severity, Code: test.code})
		if e.NotApplied != test.want || !test.want && e.Class != pawl.ClassIndeterminate {
			t.Errorf("%s %s: %v, %s", test.severity, test.code, e.NotApplied, e.Class)
		}
	}
	if e := (postgresFaults{}).committing(t.Context(), errors.New("reset")); e.NotApplied || e.Class != pawl.ClassIndeterminate {
		t.Errorf("a lost commit: %v", e)
	}
}

// reader makes a role that may do nothing and returns the URL for it.
func reader(t *testing.T, address string, grants ...string) string {
	t.Helper()
	role := "r" + strings.ToLower(rand.Text())
	admin := open(t, address, "track: false")
	run := func(sql string) {
		t.Helper()
		if _, err := admin.Call(context.WithoutCancel(t.Context()), callOf(t, "exec", "", strings.ReplaceAll(sql, "ROLE", role))); err != nil {
			t.Fatal(err)
		}
	}
	run("create role ROLE login password 'geheim123'")
	t.Cleanup(func() {
		run("do $$begin drop owned by ROLE; end$$")
		run("drop role ROLE")
	})
	for _, grant := range grants {
		run(grant)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "geheim123")
	return u.String()
}

func TestADatabaseThatDoesNotLetCallsBeRecordedIsRefused(t *testing.T) {
	address := pgtest.URL(t)
	setUp(t, address, customers, "revoke create on schema public from public")
	limited := reader(t, address, "grant select, insert on customers to ROLE")
	_, ok, faults := define(t, environment(t), t.TempDir(), "name: crm\nurl: "+limited)
	if ok || !strings.Contains(faults, "the table pawl_calls") || !strings.Contains(faults, "track: false") || !strings.Contains(faults, "42501") {
		t.Errorf("the definition is accepted (%v): %s", ok, faults)
	}
	if strings.Contains(faults, "geheim123") {
		t.Errorf("the password is told: %s", faults)
	}
	// A way out, and a way without.
	d := open(t, limited, "track: false")
	do(t, d, callOf(t, "exec", "k", "insert into customers (id, name) values (1, 'Ann')"))
	open(t, limited, "readOnly: true")
	e := fail(t, d, callOf(t, "exec", "k", "delete from customers"))
	checkFault(t, e, pawl.ClassPermission, "no_access")
	// Made by somebody else, it need not be created.
	setUp(t, address, createBooks)
	granted := reader(t, address, "grant select, insert, update on pawl_calls to ROLE", "grant insert on customers to ROLE")
	do(t, open(t, granted), callOf(t, "exec", "k", "insert into customers (id, name) values (2, 'Bob')"))
	half := reader(t, address, "grant select, insert on pawl_calls to ROLE")
	if _, ok, faults := define(t, environment(t), t.TempDir(), "name: crm\nurl: "+half); ok || !strings.Contains(faults, "pawl_calls") {
		t.Errorf("a role that cannot update is accepted: %s", faults)
	}
}

func TestServersThatCannotBeReached(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	real, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		url   string
		class pawl.Class
		code  string
	}{
		{"postgres://u:pw-geheim@" + closed + "/d", pawl.ClassTransient, "unreachable"},
		{"postgres://u:pw-geheim@nowhere.invalid/d", pawl.ClassTransient, "dns"},
		{"postgres://nobody-here:pw-geheim@" + real.Host + real.Path, pawl.ClassAuth, "auth"},
		{"postgres://" + real.User.String() + "@" + real.Host + "/no_such_database", pawl.ClassPrecondition, "no_database"},
		{"postgres://u:pw-geheim@10.0.0.1/d", pawl.ClassPermission, "blocked"},
		{"postgres://u:pw-geheim@[::1]/d", pawl.ClassPermission, "blocked"},
	} {
		d, ok, faults := define(t, environment(t), t.TempDir(), "name: crm\nurl: "+test.url+"\ntimeout: 5s")
		if wanted := test.code != "no_database"; ok != wanted {
			t.Errorf("%s: accepted %v: %s", test.url, ok, faults)
		}
		for _, call := range []connector.Call{callOf(t, "query", "", "select 1"), callOf(t, "exec", "k", "select 1")} {
			e := fail(t, d, call)
			if checkFault(t, e, test.class, test.code); strings.Contains(e.Error()+e.Hint, "geheim") {
				t.Errorf("the password is told: %v", e)
			}
		}
		answer, err := d.Reconcile(t.Context(), callOf(t, "exec", "k", "select 1"))
		if e, isFault := errors.AsType[*connector.Error](err); !isFault || e.NotApplied {
			t.Errorf("Reconcile = %v, %v; want an error that says nothing about the call", answer, err)
		}
		if saw, err := d.Test(t.Context()); err == nil {
			t.Errorf("Test saw %q", saw)
		}
	}
}

func TestPrivateAddressesAreBlockedUnlessAllowed(t *testing.T) {
	client, err := outbound.New(outbound.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	env := connector.Env{HTTP: client, Getenv: func(string) string { return "" }}
	d, _, _ := define(t, env, t.TempDir(), "name: crm\nurl: "+pgtest.URL(t))
	e := fail(t, d, callOf(t, "query", "", "select 1"))
	if checkFault(t, e, pawl.ClassPermission, "blocked"); e.Hint != "allow it with --allow-private 127.0.0.1/32" {
		t.Errorf("the hint is %q", e.Hint)
	}
}

func TestSQLiteErrorsHaveTheirClass(t *testing.T) {
	address := liteURL(t)
	file := strings.TrimPrefix(address, "sqlite:")
	setUp(t, address, customers)
	d := open(t, address, "timeout: 1s")
	for sql, code := range map[string]string{
		"select from where":                                  "bad_sql",
		"insert into nowhere values (1)":                     "bad_sql",
		"insert into customers (id) values (1)":              "constraint",
		"insert into customers (id, name) values ('x', 'y')": "bad_value",
	} {
		checkFault(t, fail(t, d, callOf(t, "exec", "k", sql)), pawl.ClassLogic, code)
	}
	other, err := open(t, address).engine.begin(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if e := fail(t, d, callOf(t, "exec", "k", "delete from customers")); e.Class != pawl.ClassTransient || !e.NotApplied {
		t.Errorf("while another writes: %v", e)
	}
	other.close(t.Context())
	do(t, d, callOf(t, "exec", "k", "delete from customers"))

	if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFault(t, fail(t, d, callOf(t, "query", "", "select * from customers")), pawl.ClassPrecondition, "no_database")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	checkFault(t, fail(t, d, callOf(t, "query", "", "select 1 as one")), pawl.ClassPrecondition, "no_database")
	checkFault(t, fail(t, d, callOf(t, "exec", "k", "select 1 as one")), pawl.ClassPrecondition, "no_database")
	if _, err := os.Stat(file); err == nil {
		t.Error("a new file was made")
	}
}
