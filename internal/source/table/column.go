package table

import "github.com/pawlrun/pawl/internal/source/spec"

// rawText is the kind of colRaw: JSON that is kept to the letter.
const rawText spec.Type = "raw"

// instant is the kind of Pawl's own instants, which have whole milliseconds.
const instant spec.Type = "instant"

// column is one column that rows have values for.
type column struct {
	name  string
	kind  spec.Type
	found string // its type in a table that was there before; empty: as Pawl makes it
}

// dialect is all that differs between the databases.
type dialect interface {
	// typeOf is the type of a column that Pawl makes; fits tells whether a
	// column of another type can hold this kind.
	typeOf(kind spec.Type) string
	fits(kind spec.Type, found string) bool

	// sameName tells whether two names are one column.
	sameName(a, b string) bool

	// lock makes those who change a table wait for each other.
	lock(table string) statement

	// inspect reads the columns of a table (name, type, 1 if it must be given
	// a value, what kind of table) and its unique indexes (name, column).
	inspect(table string) (columns, indexes statement)

	// bind turns a value of a kind into what the driver takes; refuse gives
	// the reason why a text of a kind cannot be stored, if there is one.
	bind(kind spec.Type, v any) any
	refuse(kind spec.Type, text string) string

	// insert writes the rows that are not there, update those that are there
	// and differ. compare answers, for each row that is there, with its place
	// in the chunk and 1 if it differs.
	insert(s *shape, c constants, rows *chunk) []statement
	update(s *shape, c constants, rows *chunk) []statement
	compare(s *shape, c constants, rows *chunk) []statement

	// given is the value of one of Pawl's columns, copied a value of the
	// staging table as the table takes it, and differs the condition that it
	// is another than the one that is there.
	given(own column) string
	copied(c column, value string) string
	differs(c column, there, value string) string

	// analyze prepares a table for joins with all of it.
	analyze(table string) []statement

	// read is a column as scanned answers with it. page lists rows of a
	// source, newest first, each with its created_at and its place as text
	// before the columns; remove deletes some.
	read(c column, expression string) string
	page(table, columns string, created column, q pageQuery) (statement, error)
	remove(table string) string

	// wantsLast reports whether a table needs an index to find its newest rows;
	// last reads when the newest one came.
	wantsLast() bool
	last(table, created string) string
}

// statement is a text with its arguments.
type statement struct {
	sql  string
	args []any
}

// constants are what all rows of a write share.
type constants struct {
	source string
	at     any // as the dialect binds an instant
	run    string
}

func (c constants) args() []any { return []any{c.source, c.at, c.run} }
