package script

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"

	"github.com/pawlrun/pawl/internal/visible"
)

// phase is one run of a handler inside a worker.
type phase struct {
	w      *workerSide
	id     uint32
	scope  string
	limits Limits
	engine engine
	watch  *watch

	// preparing says that the top level of the program runs for no phase in
	// particular, so it may ask nobody for anything.
	preparing bool

	calls    int // made
	inFlight map[uint32]struct{}
	logged   int // bytes of log lines

	settled bool
	end     ending
	value   string
}

// stopped is what host panics with: the phase has its ending, and no line of
// the script may run.
type stopped struct{}

// run serves a toRun frame: it answers with exactly one fromDone, fromFailed
// or fromDropped.
func (w *workerSide) run(f frame) {
	header, args, err := readRunHeader(f.payload)
	if err != nil {
		os.Exit(exitProtocol)
	}
	p := &phase{w: w, id: f.id, scope: header.Scope, limits: header.Limits, engine: w.engine, inFlight: map[uint32]struct{}{}}
	w.phase = p
	p.watch = startWatch(header.Limits.CPU, p.engine.interrupt)
	dropped := p.work(header, args)
	if p.end.Thrown != nil && p.end.Thrown.Null && p.swelled() {
		p.end.Limit = LimitHeap
	}
	p.end.CPU = p.watch.stop()
	w.report(p, dropped)
	p.engine.close() // after the report: nobody waits for it
	w.phase = nil
}

func (w *workerSide) report(p *phase, dropped bool) {
	if dropped {
		w.send(frame{kind: fromDropped, id: p.id})
		return
	}
	p.end.Retire = p.end.Limit == LimitHeap || w.holds() > retireSize
	if !p.end.HasValue && (p.end.Thrown != nil || p.end.Limit != "" || p.end.Never) {
		text, err := json.Marshal(p.end)
		if err != nil {
			os.Exit(exitProtocol)
		}
		w.send(frame{kind: fromFailed, id: p.id, payload: text})
		return
	}
	payload, err := joinHeader(p.end, []byte(p.value))
	if err != nil {
		os.Exit(exitProtocol)
	}
	w.send(frame{kind: fromDone, id: p.id, payload: payload})
}

// retireSize is how many bytes more than at its start a worker may hold at the end of
// a phase before it is replaced.
const retireSize = 96 << 20

// holds is how many bytes more than at its start the process has. At the end of a
// phase that is all that the script took: the engine gives nothing back before.
func (w *workerSide) holds() int64 { return w.memory.now() - w.startSize }

// grown is by how many bytes the process has grown, at its largest.
func (w *workerSide) grown() int64 { return w.memory.peak() - w.startSize }

// work takes the phase from load to its ending. It reports whether the other
// side gave the phase up.
func (p *phase) work(header runHeader, args []byte) (dropped bool) {
	program, dropped := p.program(header.Program)
	if dropped || p.over() {
		return dropped
	}
	p.start(program, header)
	if !p.over() {
		p.enter(func() error { return p.begin(header.Handler, args) })
	}
	for {
		p.drain()
		switch {
		case p.over():
			return false
		case len(p.inFlight) == 0:
			p.starve()
			return false
		case header.EndsAtCall:
			p.finish(ending{})
			return false
		}
		if dropped := p.await(); dropped {
			return true
		}
	}
}

// prepared is a program as a worker keeps it.
type prepared struct {
	code  code
	image *image // its top level has run; nil if there is none
	// bound says that the top level must run in each phase: it failed, or asked
	// for the time, for chance or for something of the host.
	bound bool
	size  int // bytes of both
}

// start brings the environment to where the top level of the program has run.
func (p *phase) start(program *prepared, header runHeader) {
	if program.image == nil && !program.bound {
		p.prepare(program)
	}
	if p.over() {
		return
	}
	p.open(program.image)
	p.enter(func() error { return p.engine.dispatch("set", "", settings(header)) })
	if program.image == nil && !p.over() {
		p.enter(func() error { return p.engine.load(program.code) })
	}
}

func (p *phase) open(from *image) {
	p.engine.open(from)
	p.engine.limit(p.limits.Heap, p.limits.Stack)
}

// prepare runs the top level of a program and keeps an image of the environment
// for all phases, if it is the same for all of them. If it is not, nothing has
// happened.
func (p *phase) prepare(program *prepared) {
	p.open(nil)
	p.preparing = true
	err := p.trial(program.code)
	p.preparing = false
	switch {
	case p.watch.expired():
		p.take(err)
	case err != nil:
		program.bound = true
	default:
		if kept := p.engine.save(); kept.size() <= mostImage {
			program.image = kept
			p.w.grow(program, kept.size())
		} else {
			program.bound = true
		}
	}
}

// errEarly is a top level that asked for what only a phase has.
var errEarly = errors.New("the top level depends on the phase")

// trial runs a top level that may end early.
func (p *phase) trial(program code) (err error) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case stopped:
			err = errEarly
		default:
			panic(r) // a fault of the engine: the worker ends
		}
	}()
	return p.engine.load(program)
}

func (p *phase) begin(handler string, args []byte) error {
	if handler == "" {
		return p.engine.dispatch("describe", "", "")
	}
	name, err := json.Marshal(handler)
	if err != nil {
		return err
	}
	return p.engine.dispatch("begin", "", `{"handler":`+string(name)+`,"args":`+string(args)+`}`)
}

// settings is what the prelude must know of a phase, as a list. JavaScript numbers are
// too small for a seed, so it goes in halves.
func settings(header runHeader) string {
	text := append(make([]byte, 0, 128), '[')
	for _, n := range []int64{header.Now, int64(header.Limits.HostCalls), int64(header.Limits.InFlight), int64(header.Seed >> 32), int64(uint32(header.Seed))} {
		text = append(strconv.AppendInt(text, n, 10), ',')
	}
	if header.ScheduledFor == "" {
		return string(append(text, "null]"...))
	}
	return string(append(append(append(text, '"'), header.ScheduledFor...), `"]`...)) // an instant has nothing to escape
}

// over reports whether the phase has its ending. It must be asked before every
// entry into JavaScript.
func (p *phase) over() bool {
	if !p.settled && p.watch.expired() {
		p.finish(ending{Limit: LimitCPU})
	}
	return p.settled
}

// finish gives the phase its ending, unless it has one: the first counts.
func (p *phase) finish(end ending) {
	if !p.settled {
		p.settled, p.end = true, end
	}
}

// enter runs JavaScript and takes what comes out of it.
func (p *phase) enter(f func() error) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil, stopped:
		default:
			panic(r) // a fault of the engine: the worker ends
		}
	}()
	p.take(f())
}

// take turns an exception that left JavaScript into an ending.
func (p *phase) take(err error) {
	if err == nil || p.settled {
		return
	}
	thrown, ok := errors.AsType[*scriptError](err)
	if !ok {
		panic(err)
	}
	if p.watch.expired() {
		// The exception is the interrupt: it says where the script was.
		p.finish(ending{Limit: LimitCPU, Thrown: clean(thrown)})
		return
	}
	p.throw(thrown)
}

// throw ends the phase with an exception of the script or of the engine.
func (p *phase) throw(thrown *scriptError) {
	end := ending{Thrown: clean(thrown)}
	switch {
	case isInternal(thrown, "out of memory"):
		end.Limit = LimitHeap
	case isInternal(thrown, "stack overflow"):
		end.Limit = LimitStack
	}
	p.finish(end)
}

func isInternal(e *scriptError, message string) bool {
	return e.Name == "InternalError" && e.Message == message
}

// clean cuts what a script can make as long as it likes.
func clean(e *scriptError) *scriptError {
	e.Name, e.Message, e.Stack = visible.Truncate(e.Name, mostText), visible.Truncate(e.Message, mostText), visible.Truncate(e.Stack, mostStackText)
	return e
}

// drain runs promise jobs until none is left or the phase is over.
func (p *phase) drain() {
	for more := true; more && !p.over(); {
		more = false
		p.enter(func() (err error) {
			more, err = p.engine.settle()
			return err
		})
	}
}

// starve ends a phase that waits for nothing. Memory may be the reason: an
// engine without memory drops promise jobs.
func (p *phase) starve() {
	if p.engine.full() {
		p.finish(ending{Limit: LimitHeap})
	}
	p.finish(ending{Never: true})
}

// swelled reports whether a script that threw null is likely to have met its
// limit of memory. What it held is mostly gone by now, so the process is asked
// how large it ever was.
func (p *phase) swelled() bool {
	return p.w.grown() >= p.limits.Heap/4*3 || p.engine.full()
}

// await waits for the next answer and hands it to the script.
func (p *phase) await() (dropped bool) {
	f, err := readFrame(p.w.in, toLimit)
	if err != nil {
		os.Exit(exitDone)
	}
	op := ""
	switch f.kind {
	case toAnswer:
		op = "answer"
	case toRefuse:
		op = "refuse"
	case toAbort:
		return f.id == p.id
	default:
		os.Exit(exitProtocol)
	}
	if _, ok := p.inFlight[f.id]; !ok || p.over() {
		return false
	}
	delete(p.inFlight, f.id)
	p.enter(func() error {
		return p.engine.dispatch(op, strconv.FormatUint(uint64(f.id), 10), string(f.payload))
	})
	return false
}

// program returns the code of a program, asking for it when it is not here.
func (p *phase) program(version string) (program *prepared, dropped bool) {
	if program, ok := p.w.programs[version]; ok {
		return program, false
	}
	p.w.send(frame{kind: fromNeed, id: p.id})
	for {
		f, err := readFrame(p.w.in, toLimit)
		switch {
		case err != nil:
			os.Exit(exitDone)
		case f.kind == toAbort && f.id == p.id:
			return nil, true
		case f.kind == toProgram:
			compiled, err := p.engine.compile(shifted(string(f.payload)))
			if err != nil {
				p.take(err)
				return nil, false
			}
			return p.w.keep(version, compiled), false
		}
	}
}

// How many programs a worker keeps, how many bytes of them, and of one image.
const (
	mostPrograms = 1024
	mostKept     = 48 << 20
	mostImage    = 8 << 20
)

func (w *workerSide) keep(version string, compiled code) *prepared {
	program := &prepared{code: compiled}
	w.grow(program, len(compiled))
	w.programs[version] = program
	return program
}

// grow counts bytes of a program, and makes room for them by forgetting others.
func (w *workerSide) grow(program *prepared, size int) {
	for version, other := range w.programs { // in no order, so that nobody who takes turns is always out
		if w.kept+size <= mostKept && len(w.programs) < mostPrograms {
			break
		}
		if other != program {
			w.kept -= other.size
			delete(w.programs, version)
		}
	}
	w.kept += size
	program.size += size
}
