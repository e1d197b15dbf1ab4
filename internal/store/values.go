package store

import (
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
)

// rowsAtOnce bounds the rows of one statement. The SQLite driver takes a time
// for the arguments that grows with the square of their number, and PostgreSQL
// gains nothing from more.
const rowsAtOnce = 64

// fewRows is up to which number of rows there is a statement for each number.
const fewRows = 16

// Batches cuts a list for statements that take many rows, in few sizes: every
// size is another text, which both drivers keep prepared on each connection.
func Batches[T any](list []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for rest := list; len(rest) > 0; {
			n := batchSize(len(rest))
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

func batchSize(rows int) int {
	if rows <= fewRows {
		return rows
	}
	return min(1<<(bits.Len(uint(rows))-1), rowsAtOnce)
}

// Values builds the rows of an INSERT with their arguments.
type Values struct {
	text strings.Builder
	Args []any
}

func (v *Values) Row(args ...any) {
	if v.text.Len() > 0 {
		v.text.WriteByte(',')
	}
	v.text.WriteByte('(')
	v.list(args...)
	v.text.WriteByte(')')
}

// list appends arguments as $n, $n+1, ...
func (v *Values) list(args ...any) {
	for i, a := range args {
		if i > 0 {
			v.text.WriteByte(',')
		}
		v.Args = append(v.Args, a)
		v.text.WriteString("$" + strconv.Itoa(len(v.Args)))
	}
}

func (v *Values) String() string { return v.text.String() }

// In makes a list for IN, whose arguments follow those given.
func In[T any](before []any, list []T) (text string, args []any) {
	v := Values{Args: before}
	more := make([]any, len(list))
	for i, s := range list {
		more[i] = s
	}
	v.list(more...)
	return "(" + v.String() + ")", v.Args
}

// Storable reports whether both databases take a text. PostgreSQL refuses NUL
// and what is not UTF-8, and with it the whole transaction.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// CheckText refuses a text that identifies something and is not storable.
func CheckText(op, what, s string) error {
	if Storable(s) {
		return nil
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: op, Msg: fmt.Sprintf("%s %q has a NUL character or is not UTF-8", what, s)}
}

// cleaned makes a text storable that only has to be read later, such as what a
// server answered: it is kept but for the characters that cannot be.
func cleaned(s string) string {
	if Storable(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
