package script

import (
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	js "modernc.org/libquickjs"
)

// quick is QuickJS, translated from C to Go. Its memory is an arena, so that a
// phase starts from an image instead of building an environment. JavaScript
// values are not kept but for the prelude's entry; everything else crosses as
// text.
type quick struct {
	memory *arena
	base   int64    // address of the arena
	blank  []uint64 // the prelude is loaded, and nothing else
	fresh  bool     // that is what the arena is
	host   hostFunc

	tls     *libc.TLS
	runtime uintptr
	context uintptr
	entry   js.TJSValue

	stop atomic.Bool
	heap int64

	// What C is given the address of must not be on a stack, which moves.
	args [3]js.TJSValue
	size js.Tsize_t
	ctx  uintptr
}

// theQuick is the engine of this process: functions that C calls have nothing
// else to find it by.
var theQuick *quick //nolint:gochecknoglobals // a worker has one engine, and C has no other way to it

// Room for the engine's own structures beside the heap of scripts, and for what
// fragmentation costs.
const (
	arenaTimes = 2
	arenaExtra = 64 << 20
)

// arenaSize is the most memory of an engine for scripts with so much heap.
func arenaSize(heap int64) int64 { return arenaTimes*heap + arenaExtra }

// newQuick makes the engine of this process. What the prelude sends goes to host.
func newQuick(heap int64, host hostFunc) (*quick, error) {
	words, err := newPages(arenaSize(heap))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEngine, err)
	}
	q := &quick{memory: newArena(words), base: int64(uintptr(unsafe.Pointer(unsafe.SliceData(words)))), host: host, tls: libc.NewTLS()}
	theQuick = q
	functions := js.TJSMallocFunctions{Fjs_malloc: pointer(quickMalloc), Fjs_free: pointer(quickFree), Fjs_realloc: pointer(quickRealloc), Fjs_malloc_usable_size: pointer(quickUsable)}
	if q.runtime = js.XJS_NewRuntime2(q.tls, uintptr(unsafe.Pointer(&functions)), 0); q.runtime == 0 {
		return nil, fmt.Errorf("%w: no runtime", errEngine)
	}
	if q.context = js.XJS_NewContext(q.tls, q.runtime); q.context == 0 {
		return nil, fmt.Errorf("%w: no context", errEngine)
	}
	js.XJS_SetInterruptHandler(q.tls, q.runtime, pointer(quickInterrupted), 0)
	return q, q.loadPrelude()
}

func (q *quick) loadPrelude() error {
	empty := q.memory.save() // bytecode must not be made where it is loaded: that leaves traces
	prelude, err := q.compileHere(preludeSource)
	if err != nil {
		return fmt.Errorf("compile the prelude: %w", err)
	}
	q.memory.restore(empty)
	host := js.XJS_NewCFunction2(q.tls, q.context, pointer(quickHost), cText("__host\x00"), 2, js.EJS_CFUNC_generic, 0)
	global := js.XJS_GetGlobalObject(q.tls, q.context)
	set := js.XJS_SetPropertyStr(q.tls, q.context, global, cText("__host\x00"), host) // takes host; the prelude deletes the name
	js.XFreeValue(q.tls, q.context, global)
	if set < 0 {
		return fmt.Errorf("%w: %w", errEngine, q.thrown())
	}
	if q.entry, err = q.eval(prelude); err != nil {
		return fmt.Errorf("run the prelude: %w", err)
	}
	q.blank = q.memory.save()
	return nil
}

// engineName is what workers say they run.
const engineName = "quickjs " + quickVersion

// quickVersion is that of modernc.org/libquickjs. A test holds it and go.mod
// together.
const quickVersion = "0.13.1"

// compileHeap is what the parser of the engine may use; it is far more than
// the largest program needs.
const compileHeap = 256 << 20

func (q *quick) compile(javascript string) (code, error) {
	q.open(nil)
	defer q.open(nil)
	q.limit(compileHeap, 0)
	return q.compileHere(javascript)
}

// compileHere compiles in the environment there is.
func (q *quick) compileHere(javascript string) (code, error) {
	text := javascript + "\x00" // the parser looks at what is behind the end
	const flags = js.MJS_EVAL_TYPE_GLOBAL | js.MJS_EVAL_FLAG_COMPILE_ONLY
	value := js.XJS_Eval(q.tls, q.context, cText(text), js.Tsize_t(len(javascript)), cText("<eval>\x00"), flags)
	runtime.KeepAlive(text)
	if value.Ftag == js.EJS_TAG_EXCEPTION {
		return nil, q.thrown()
	}
	defer js.XFreeValue(q.tls, q.context, value)
	at := js.XJS_WriteObject(q.tls, q.context, uintptr(unsafe.Pointer(&q.size)), value, js.MJS_WRITE_OBJ_BYTECODE)
	if at == 0 {
		return nil, q.thrown()
	}
	defer js.Xjs_free(q.tls, q.context, at)
	return append(code(nil), q.bytes(at, q.size)...), nil
}

func (q *quick) open(from *image) {
	q.close()
	if from != nil {
		q.memory.apply(from)
	}
	q.fresh = false // whoever opens it uses it
	q.stop.Store(false)
}

func (q *quick) save() *image { return q.memory.differ(q.blank) }

// close makes the environment what it was before any script, which takes longer than
// most phases: once between two of them is enough.
func (q *quick) close() {
	if !q.fresh {
		q.memory.restore(q.blank)
		q.fresh = true
	}
}

func (q *quick) limit(heap int64, stack int) {
	q.heap = heap
	js.XJS_SetMemoryLimit(q.tls, q.runtime, js.Tsize_t(heap))
	js.XJS_SetMaxStackSize(q.tls, q.runtime, js.Tsize_t(stack))
}

func (q *quick) load(program code) error {
	value, err := q.eval(program)
	if err == nil {
		js.XFreeValue(q.tls, q.context, value)
	}
	return err
}

// eval runs code and returns its value.
func (q *quick) eval(program code) (js.TJSValue, error) {
	compiled := js.XJS_ReadObject(q.tls, q.context, uintptr(unsafe.Pointer(unsafe.SliceData(program))), js.Tsize_t(len(program)), js.MJS_READ_OBJ_BYTECODE)
	runtime.KeepAlive(program)
	if compiled.Ftag == js.EJS_TAG_EXCEPTION {
		return compiled, q.thrown()
	}
	value := js.XJS_EvalFunction(q.tls, q.context, compiled) // takes compiled
	if value.Ftag == js.EJS_TAG_EXCEPTION {
		return value, q.thrown()
	}
	return value, nil
}

func (q *quick) dispatch(op, id, text string) error {
	for i, arg := range [...]string{op, id, text} {
		if q.args[i] = q.newText(arg); q.args[i].Ftag == js.EJS_TAG_EXCEPTION {
			for _, made := range q.args[:i] {
				js.XFreeValue(q.tls, q.context, made)
			}
			return q.thrown()
		}
	}
	args := q.args // a script that calls back uses them as well
	value := js.XJS_Call(q.tls, q.context, q.entry, js.TJSValue{Ftag: js.EJS_TAG_UNDEFINED}, int32(len(q.args)), uintptr(unsafe.Pointer(&q.args)))
	for _, arg := range args {
		js.XFreeValue(q.tls, q.context, arg)
	}
	if value.Ftag == js.EJS_TAG_EXCEPTION {
		return q.thrown()
	}
	js.XFreeValue(q.tls, q.context, value)
	return nil
}

func (q *quick) settle() (more bool, err error) {
	const most = 1 << 20
	for range most {
		switch js.XJS_ExecutePendingJob(q.tls, q.runtime, uintptr(unsafe.Pointer(&q.ctx))) {
		case 0:
			return false, err
		case 1:
		default: // the first exception is told, and the others run
			if thrown := q.thrown(); err == nil {
				err = thrown
			}
		}
	}
	return true, nil
}

// full asks for an eighth of the heap, because the engine does not say how
// much is in use.
func (q *quick) full() bool {
	q.stop.Store(false)
	return q.dispatch("probe", "", strconv.FormatInt(q.heap/8, 10)) != nil
}

func (q *quick) interrupt() { q.stop.Store(true) }

// thrown takes the exception that is pending.
func (q *quick) thrown() error {
	value := js.XJS_GetException(q.tls, q.context)
	defer js.XFreeValue(q.tls, q.context, value)
	if value.Ftag == js.EJS_TAG_NULL {
		return &scriptError{Value: true, Null: true, Message: "null"}
	}
	e := &scriptError{Name: q.field(value, "name\x00"), Message: q.field(value, "message\x00"), Stack: q.field(value, "stack\x00")}
	if e.Name == "" && e.Stack == "" {
		e.Value, e.Message = true, q.text(value)
		e.Null = e.Message == "null"
	}
	return e
}

// field reads a text of an exception, empty if it has none. Its getter may throw.
func (q *quick) field(of js.TJSValue, name string) string {
	if of.Ftag == js.EJS_TAG_UNDEFINED {
		return ""
	}
	value := js.XJS_GetPropertyStr(q.tls, q.context, of, cText(name))
	defer js.XFreeValue(q.tls, q.context, value)
	switch value.Ftag {
	case js.EJS_TAG_STRING, js.EJS_TAG_STRING_ROPE:
		return q.text(value)
	case js.EJS_TAG_EXCEPTION:
		js.XFreeValue(q.tls, q.context, js.XJS_GetException(q.tls, q.context))
	}
	return ""
}

// text is a value as text, empty if it cannot be.
func (q *quick) text(value js.TJSValue) string {
	at := js.XJS_ToCStringLen2(q.tls, q.context, uintptr(unsafe.Pointer(&q.size)), value, 0)
	if at == 0 {
		js.XFreeValue(q.tls, q.context, js.XJS_GetException(q.tls, q.context))
		return ""
	}
	defer js.XJS_FreeCString(q.tls, q.context, at)
	return string(q.bytes(at, q.size))
}

func (q *quick) newText(text string) js.TJSValue {
	value := js.XJS_NewStringLen(q.tls, q.context, uintptr(unsafe.Pointer(unsafe.StringData(text))), js.Tsize_t(len(text)))
	runtime.KeepAlive(text)
	return value
}

// bytes is what C has at an address.
func (q *quick) bytes(at uintptr, size js.Tsize_t) []byte {
	return unsafe.Slice(in[byte](at), size)
}

// in is what is at an address that C gave.
func in[T any](at uintptr) *T { return *(**T)(unsafe.Pointer(&at)) }

// cText is the address of a constant text that ends with a zero.
func cText(text string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(text))) }

// pointer is a function as C calls it.
func pointer(function any) uintptr {
	type words [2]uintptr
	return (*words)(unsafe.Pointer(&function))[1]
}

// ---- What C calls ----

// quickHost is __host of the prelude.
func quickHost(_ *libc.TLS, _ uintptr, _ js.TJSValue, argc int32, argv uintptr) js.TJSValue {
	q := theQuick
	args := unsafe.Slice(in[js.TJSValue](argv), argc)
	return q.newText(q.host(q.text(args[0]), q.text(args[1])))
}

// quickInterrupted is asked now and then whether the script must stop.
func quickInterrupted(*libc.TLS, uintptr, uintptr) int32 {
	if theQuick.stop.Load() {
		return 1
	}
	return 0
}

// blockCost is what a block counts beside its bytes.
const blockCost = head * 8

func quickMalloc(_ *libc.TLS, state uintptr, size js.Tsize_t) uintptr {
	q, s := theQuick, in[js.TJSMallocState](state)
	if s.Fmalloc_size+size > s.Fmalloc_limit {
		return 0
	}
	p := q.memory.alloc(size)
	if p == 0 {
		return 0
	}
	s.Fmalloc_count++
	s.Fmalloc_size += q.memory.bytesOf(p) + blockCost
	return q.address(p)
}

func quickFree(_ *libc.TLS, state, at uintptr) {
	if at == 0 {
		return
	}
	q, s, p := theQuick, in[js.TJSMallocState](state), theQuick.place(at)
	s.Fmalloc_count--
	s.Fmalloc_size -= q.memory.bytesOf(p) + blockCost
	q.memory.release(p)
}

func quickRealloc(tls *libc.TLS, state, at uintptr, size js.Tsize_t) uintptr {
	switch {
	case at == 0 && size == 0:
		return 0
	case at == 0:
		return quickMalloc(tls, state, size)
	case size == 0:
		quickFree(tls, state, at)
		return 0
	}
	q, s, p := theQuick, in[js.TJSMallocState](state), theQuick.place(at)
	was := q.memory.bytesOf(p)
	if s.Fmalloc_size+size-was > s.Fmalloc_limit {
		return 0
	}
	if p = q.memory.realloc(p, size); p == 0 {
		return 0
	}
	s.Fmalloc_size += q.memory.bytesOf(p) - was
	return q.address(p)
}

func quickUsable(_ *libc.TLS, at uintptr) js.Tsize_t {
	if at == 0 {
		return 0
	}
	return theQuick.memory.bytesOf(theQuick.place(at))
}

func (q *quick) address(p uint64) uintptr { return uintptr(q.base) + uintptr(p)*8 }
func (q *quick) place(at uintptr) uint64  { return uint64(at-uintptr(q.base)) / 8 }
