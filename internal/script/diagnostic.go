package script

import (
	"strings"

	"github.com/pawlrun/pawl"
)

// Diagnostic is one fault in a source.
type Diagnostic struct {
	Place
	Message string
	Hint    string
	Text    string // the line of the source
}

// String returns file:line:column: message.
func (d Diagnostic) String() string { return placed(d.Place, d.Message) }

// Diagnostics are the faults of a source that does not compile. Compile
// returns them inside a *pawl.Error; errors.As finds them.
type Diagnostics []Diagnostic

// Error lists the faults, one a line.
func (d Diagnostics) Error() string {
	lines := make([]string, len(d))
	for i := range d {
		lines[i] = d[i].String()
	}
	return strings.Join(lines, "\n")
}

// invalid makes the error of a source that does not compile.
func invalid(file string, faults ...Diagnostic) error {
	e := &pawl.Error{Code: pawl.CodeInvalid, Op: "compile " + file, Msg: "the script has errors", Err: Diagnostics(faults)}
	if len(faults) > 0 {
		e.Hint = faults[0].Hint
	}
	for _, fault := range faults {
		e.Fields = append(e.Fields, pawl.Field{Pointer: "/script", Message: fault.String()})
	}
	return e
}
