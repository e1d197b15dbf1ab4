package sqltool

import (
	"database/sql"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSQLiteStatementsAreReadAsSQLiteReadsThem(t *testing.T) {
	for text, want := range map[string]string{
		"select 1":                           "",
		" ;; select 1 ; -- end\n;/* ; */ ":   "",
		"select ';', \";\", `;`, [;], x'3b'": "",
		"select 'it''s; fine', \"a\"\";\"":   "",
		"select 1 -- ; drop\n + 2":           "",
		"select 1 /* ; /* */ + 2":            "",
		"select a$1, $1, $2, $1":             "",
		"\ufeffselect 1":                     "",
		"select é; ":                         "",
		"select 1;select 2":                  "more than one statement",
		"select 1; commit":                   "more than one statement",
		"select '1';--\n'2'":                 "more than one statement",
		"select [a;b]]; c":                   "more than one statement",
		"create trigger t after insert on a begin delete from a; end": "more than one statement",
		"select 'a":    "is not closed",
		"select \"a''": "is not closed",
		"select [a":    "is not closed",
		"select ?":     "outside of quotes",
		"select ?1":    "outside of quotes",
		"select :a":    "outside of quotes",
		"select @a":    "outside of quotes",
		"select $a":    "no number follows",
		"select $":     "no number follows",
		"select $a('); pragma query_only = 0 --')": "no number follows",
		"select $1('); pragma query_only = 0 --')": "no number follows",
		"select $1::x(')')":                        "no number follows",
		"select $1a":                               "no number follows",
		"select $01":                               "is not a parameter",
		"select $0":                                "is not a parameter",
		"select $99999999999999999999":             "is not a parameter",
	} {
		_, err := scanSQLite(text)
		if got := errorText(err); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q is told %q, want %q", text, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSQLiteParametersAreCounted(t *testing.T) {
	l := &sqlite{}
	for text, params := range map[string]int{"select 1": 0, "select $1": 1, "select $3": 3, "select '$1', \"$2\", a$3 -- $4": 0} {
		for given := range 5 {
			if _, err := l.check(methodQuery, text, given); (err == nil) != (given == params) {
				t.Errorf("%q with %d params: %v", text, given, err)
			}
		}
	}
}

// The rules of lexing are written down a second time here, so SQLite itself is
// asked: whatever passes as one statement must not run a second.
func TestNoSecondStatementPasses(t *testing.T) {
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	const second = ";pragma user_version = 7;"
	// Statements that are valid more often than not, with traps wherever text
	// can be.
	trap := rapid.SampledFrom([]string{"'", "''", `"`, "`", "[", "]", "--", "/*", "*/", "\n", ")", "(", "$1", "$a(", "?", ":a", "\u00a0", "\ufeff", "x", second})
	frame := rapid.SampledFrom([]string{
		"'%'", "1 as \"%\"", "1 as `%`", "1 as [%]", "1/*%*/", "1--%\n", "$1", "$a(%)", "$1(%)", "$1::a(%)", ":a", "@a", "?1", "x'00'", "X''", "1.e1", "é%", "1 as a$%", "%",
	})
	between := rapid.SampledFrom([]string{", ", ", ", " ", second})
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			text := "select 1"
			for range rapid.IntRange(1, 4).Draw(t, "items") {
				inner := strings.Join(rapid.SliceOfN(trap, 0, 2).Draw(t, "traps"), "")
				text += between.Draw(t, "between") + strings.Replace(frame.Draw(t, "frame"), "%", inner, 1)
			}
			found, err := scanSQLite(text)
			if err != nil {
				continue
			}
			passed++
			_, _ = db.ExecContext(t.Context(), text, append(make([]any, found.params), sql.Named("a", 1))...)
			var version int
			if err := db.QueryRowContext(t.Context(), "pragma user_version").Scan(&version); err != nil || version != 0 {
				_, _ = db.ExecContext(t.Context(), "pragma user_version = 0")
				t.Fatalf("a second statement in %q was run: %d, %v", text, version, err)
			}
		}
	})
	if passed == 0 {
		t.Error("nothing passed")
	}
}
