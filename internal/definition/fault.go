package definition

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
)

// Faults are what is wrong with one document.
type Faults struct {
	file string
	root *node
	list []fault
	more int // faults beyond the most that are told
}

type fault struct {
	place   place
	pointer string
	message string
}

// Add notes a fault in the value at a JSON pointer; of a value that is not
// there, the place is that of what it should be in. One fault of a value is
// enough: whatever is noted later about it, or about what it holds, is left
// out, so that callers can check values that could not be read.
func (f *Faults) Add(pointer, format string, values ...any) {
	if slices.ContainsFunc(f.list, func(has fault) bool { return has.pointer != "" && strings.HasPrefix(pointer, has.pointer+"/") }) {
		return
	}
	_, at := f.root.find(pointer)
	f.addAt(at, pointer, format, values...)
}

// AddName notes a fault in the name of the field at a JSON pointer.
func (f *Faults) AddName(pointer, format string, values ...any) {
	above, name := path.Split(pointer)
	holder, at := f.root.find(strings.TrimSuffix(above, "/"))
	if holder != nil {
		if field := holder.field(unescape(name)); field != nil {
			at = field.place
		}
	}
	f.addAt(at, pointer, format, values...)
}

// Any reports whether there is a fault.
func (f *Faults) Any() bool { return len(f.list) > 0 }

// At reports whether there is a fault in the value at a pointer, or in what it
// holds.
func (f *Faults) At(pointer string) bool {
	return slices.ContainsFunc(f.list, func(has fault) bool {
		return has.pointer == pointer || strings.HasPrefix(has.pointer, pointer+"/")
	})
}

// Fields are the faults in the order of the file.
func (f *Faults) Fields() []pawl.Field {
	slices.SortStableFunc(f.list, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.place.line, b.place.line), cmp.Compare(a.place.column, b.place.column), cmp.Compare(a.pointer, b.pointer))
	})
	var fields []pawl.Field
	for _, has := range f.list {
		fields = append(fields, pawl.Field{Place: has.place.in(f.file), Pointer: has.pointer, Message: has.message})
	}
	if f.more > 0 {
		fields = append(fields, wholeFile(f.file, "%d more faults are not shown", f.more))
	}
	return fields
}

func (f *Faults) addAt(at place, pointer, format string, values ...any) {
	if slices.ContainsFunc(f.list, func(has fault) bool { return has.pointer == pointer }) {
		return
	}
	if len(f.list) == mostFaults {
		f.more++
		return
	}
	f.list = append(f.list, fault{place: at, pointer: pointer, message: fmt.Sprintf(format, values...)})
}

// wholeFile is a fault of a file that is nowhere in it.
func wholeFile(file, format string, values ...any) pawl.Field {
	return pawl.Field{Place: pawl.Place{File: file}, Message: fmt.Sprintf(format, values...)}
}

// Invalid is the error of definitions with faults; nil if there are none. op
// is what was being done, such as "read sources".
func Invalid(op string, faults []pawl.Field) error {
	switch len(faults) {
	case 0:
		return nil
	case 1:
		return &pawl.Error{Code: pawl.CodeInvalid, Op: op, Msg: faults[0].String(), Fields: faults}
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: op, Fields: faults,
		Msg: fmt.Sprintf("%s (and %d more faults)", faults[0], len(faults)-1),
	}
}

func sortedByName(fields []named) []named {
	return slices.SortedFunc(slices.Values(fields), func(a, b named) int { return cmp.Compare(a.name, b.name) })
}
