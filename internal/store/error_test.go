package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	pawl "github.com/pawlrun/pawl"
)

// What PostgreSQL answers decides what follows: whether it is tried again, waited
// for, or told as it is; and what people read.
func TestWhatErrorsOfPostgresMean(t *testing.T) {
	db := &DB{dialect: postgres{}}
	sql := func(code string) error { return fmt.Errorf("do: %w", &pgconn.PgError{Code: code}) }
	for name, c := range map[string]struct {
		err           error
		kind          errorKind
		code          pawl.Code
		words         string
		refused, away bool // the answer of a database that works; may go away by itself
	}{
		"serialization":     {sql("40001"), errorContention, pawl.CodeUnavailable, "busy", false, false},
		"deadlock":          {sql("40P01"), errorContention, pawl.CodeUnavailable, "busy", false, false},
		"lock timeout":      {sql("55P03"), errorContention, pawl.CodeUnavailable, "busy", false, false},
		"unique":            {sql("23505"), errorUnique, "", "", true, false},
		"id of another":     {&pgconn.PgError{Code: "23505", ConstraintName: "jobs_pkey"}, errorSameID, pawl.CodeUnavailable, "busy", false, false},
		"full":              {sql("53100"), errorFull, pawl.CodeUnavailable, "no space left", false, false},
		"text":              {sql("22021"), errorText, pawl.CodeInvalid, "cannot be stored", true, false},
		"read-only":         {sql("25006"), errorUnavailable, pawl.CodeUnavailable, "cannot be reached", false, true},
		"idle transaction":  {sql("25P03"), errorUnavailable, pawl.CodeUnavailable, "cannot be reached", false, true},
		"shutting down":     {sql("57P01"), errorUnavailable, pawl.CodeUnavailable, "cannot be reached", false, true},
		"out of memory":     {sql("53200"), errorUnavailable, pawl.CodeUnavailable, "cannot be reached", false, true},
		"wrong password":    {sql("28P01"), errorOther, "", "", true, false},
		"a mistake of ours": {sql("42703"), errorOther, "", "", true, false},
		"broken line":       {&net.OpError{Op: "read", Err: errors.New("reset")}, errorUnavailable, pawl.CodeUnavailable, "cannot be reached", false, true},
		"another error":     {errors.New("other"), errorOther, "", "", false, false},
	} {
		if got := classifyPostgres(c.err); got != c.kind {
			t.Errorf("%s is %d, want %d", name, got, c.kind)
		}
		wrapped := db.wrap(c.err)
		e, coded := errors.AsType[*pawl.Error](wrapped)
		if coded != (c.code != "") || coded && (e.Code != c.code || !strings.Contains(e.Msg, c.words) || e.Hint == "") || !errors.Is(wrapped, c.err) {
			t.Errorf("%s is told as %v, want %s: %s", name, wrapped, c.code, c.words)
		}
		if got := Refused(wrapped); got != c.refused {
			t.Errorf("%s is the answer of a database that works: %v", name, got)
		}
		if got := IsAway(wrapped); got != c.away {
			t.Errorf("%s may go away by itself: %v", name, got)
		}
	}
}

// What is no error of a database stays as it is, and one that is no sentence gets
// one.
func TestErrorsThatAreNotOfADatabase(t *testing.T) {
	db := &DB{dialect: postgres{}}
	for _, err := range []error{nil, context.Canceled, context.DeadlineExceeded, pawl.ErrNotFound, &pawl.Error{Code: pawl.CodeConflict}} {
		if got := db.wrap(err); got != err { //nolint:errorlint // the very one
			t.Errorf("%v becomes %v", err, got)
		}
		if Refused(err) || IsAway(err) {
			t.Errorf("%v says something about a database", err)
		}
	}
	odd, plain := errors.New("conn closed"), errors.New("reset by peer")
	if got := inWords(odd); got.Error() != "the connection broke" || !errors.Is(got, odd) {
		t.Errorf("it is told as %v", got)
	}
	if got := inWords(plain); !errors.Is(got, plain) || got.Error() != plain.Error() {
		t.Errorf("it is told as %v", got)
	}
}

// A database that is full or away is remembered as one that cannot be written,
// until something is; other errors say nothing about that.
func TestWhetherWritingWorksIsRemembered(t *testing.T) {
	BothForTest(t, func(t *testing.T, db *DB) {
		full := error(&pgconn.PgError{Code: "53100"})
		if !db.Shared() {
			full = sqliteErrorForTest(t, db)
		}
		for _, c := range []struct {
			err  error
			want bool
		}{{errors.New("other"), false}, {full, true}, {errors.New("other"), true}, {nil, false}} {
			if db.note(c.err); db.failing.Load() != c.want {
				t.Errorf("after %v it is known to fail: %v", c.err, !c.want)
			}
		}
	})
}

// sqliteErrorForTest is what SQLite says when it has no room for a page.
func sqliteErrorForTest(t *testing.T, db *DB) (full error) {
	t.Helper()
	for _, sql := range []string{`pragma max_page_count = 1`, `create table too_much as select zeroblob(100000)`} {
		full = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, sql); return err })
	}
	if classifySQLite(full) != errorFull {
		t.Fatalf("%v is not what a full disk says", full)
	}
	db.failing.Store(false)
	return full
}

// Two tables with the same number of rows that differ in one value have two
// checksums, whatever the order of their rows.
func TestChecksumsTellTablesApart(t *testing.T) {
	table := &CopyTable{Columns: make([]CopyColumn, 1)}
	sum := func(rows ...any) string {
		var c checksum
		for _, v := range rows {
			c.add(table, []any{v})
		}
		return c.copied(table).Checksum
	}
	first := sum("a", "b")
	if first != sum("b", "a") || first == sum("a", "c") || first == sum("a") || first[:16] == sum("a", "c")[:16] || first[16:] == sum("a", "c")[16:] {
		t.Errorf("the checksums are %s, %s and %s", first, sum("a", "c"), sum("a"))
	}
}
