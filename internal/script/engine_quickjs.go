package script

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"modernc.org/quickjs"
)

// quick is QuickJS, translated from C to Go.
type quick struct {
	prelude func() (code, error)
}

func newQuick() *quick {
	q := &quick{}
	q.prelude = sync.OnceValues(func() (code, error) { return q.compile(preludeSource) })
	return q
}

func (*quick) name() string { return "quickjs " + quickjs.Version() }

func (*quick) compile(javascript string) (code, error) {
	machine, err := quickjs.NewVM()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEngine, err)
	}
	defer closeMachine(machine)
	machine.SetMemoryLimit(compileHeap)
	compiled, err := machine.Compile(javascript, quickjs.EvalGlobal)
	if err != nil {
		return nil, fromQuick(err)
	}
	return compiled, nil
}

// compileHeap is what the parser of the engine may use; it is far more than
// the largest program needs.
const compileHeap = 256 << 20

func (q *quick) newVM(host hostFunc) (vm, error) {
	prelude, err := q.prelude()
	if err != nil {
		return nil, fmt.Errorf("compile the prelude: %w", err)
	}
	machine, err := quickjs.NewVM()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEngine, err)
	}
	// The prelude takes __host and deletes the name.
	if err := machine.RegisterFunc("__host", (func(op, text string) string)(host), false); err != nil {
		closeMachine(machine)
		return nil, fmt.Errorf("%w: %w", errEngine, err)
	}
	entry, err := machine.EvalBytecodeValue(prelude)
	if err != nil {
		closeMachine(machine)
		return nil, fmt.Errorf("run the prelude: %w", err)
	}
	return &quickVM{machine: machine, entry: entry}, nil
}

// quickVM holds exactly one JavaScript value, the prelude's entry; everything
// else crosses as strings.
type quickVM struct {
	machine *quickjs.VM
	entry   quickjs.Value
	heap    int64
}

func (v *quickVM) limit(heap int64, stack int) {
	v.heap = heap
	v.machine.SetMemoryLimit(uintptr(heap))
	v.machine.SetMaxStackSize(uintptr(stack))
}

func (v *quickVM) load(program code) error {
	value, err := v.machine.EvalBytecodeValue(program)
	if err != nil {
		return fromQuick(err)
	}
	value.Free()
	return nil
}

func (v *quickVM) dispatch(op, id, text string) error {
	_, err := v.entry.Call(quickjs.UndefinedValue, op, id, text)
	return fromQuick(err)
}

func (v *quickVM) settle() (more bool, err error) {
	const most = 1 << 20 // ExecutePendingJobs stops by itself after so many
	n, err := v.machine.ExecutePendingJobs()
	if n >= most {
		return true, nil
	}
	return false, fromQuick(err)
}

// full asks for an eighth of the heap, because the engine does not say how
// much is in use.
func (v *quickVM) full() bool {
	return v.dispatch("probe", "", strconv.FormatInt(v.heap/8, 10)) != nil
}

func (v *quickVM) interrupt() { v.machine.Interrupt() }

func (v *quickVM) close() {
	v.entry.Free()
	closeMachine(v.machine)
}

func closeMachine(machine *quickjs.VM) { _ = machine.Close() } // it has nothing to report

// fromQuick turns an exception into a scriptError.
func fromQuick(err error) error {
	if err == nil {
		return nil
	}
	thrown, ok := errors.AsType[*quickjs.Error](err)
	if !ok {
		return fmt.Errorf("%w: %w", errEngine, err)
	}
	e := &scriptError{Name: thrown.Name, Message: thrown.Message, Stack: thrown.Stack}
	if thrown.Name == "" && thrown.Stack == "" {
		e.Value, e.Null, e.Message = true, thrown.Error() == "null", thrown.Error()
	}
	return e
}
