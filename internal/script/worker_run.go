package script

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
)

// phase is one run of a handler inside a worker.
type phase struct {
	w      *workerSide
	id     uint32
	scope  string
	limits Limits
	vm     vm
	watch  *watch

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
	var header runHeader
	args, err := splitHeader(f.payload, &header)
	if err != nil {
		os.Exit(exitProtocol)
	}
	p := &phase{w: w, id: f.id, scope: header.Scope, limits: header.Limits, inFlight: map[uint32]struct{}{}}
	p.vm, w.spare = w.spare, nil
	p.vm.limit(header.Limits.Heap, header.Limits.Stack)
	w.phase = p
	p.watch = startWatch(header.Limits.CPU, p.vm.interrupt)
	dropped := p.work(header, args)
	if p.end.Thrown != nil && p.end.Thrown.Null && p.swelled() {
		p.end.Limit = LimitHeap
	}
	p.end.CPU = p.watch.stop()
	w.report(p, dropped)
	p.vm.close() // after the report: nobody waits for it
	w.phase = nil
}

func (w *workerSide) report(p *phase, dropped bool) {
	if dropped {
		w.send(frame{kind: fromDropped, id: p.id})
		return
	}
	p.end.Retire = p.end.Limit == LimitHeap || w.grown() > retireSize
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

// retireSize is by how many bytes a worker may have grown before it is
// replaced.
const retireSize = 96 << 20

// grown is by how many bytes the process has grown, at its largest.
func (w *workerSide) grown() int64 { return w.memory.peak() - w.startSize }

// work takes the phase from load to its ending. It reports whether the other
// side gave the phase up.
func (p *phase) work(header runHeader, args []byte) (dropped bool) {
	program, dropped := p.program(header.Program)
	if dropped || p.over() {
		return dropped
	}
	p.enter(func() error { return p.vm.dispatch("set", "", settings(header)) })
	if !p.over() {
		p.enter(func() error { return p.vm.load(program) })
	}
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
		}
		if dropped := p.await(); dropped {
			return true
		}
	}
}

func (p *phase) begin(handler string, args []byte) error {
	if handler == "" {
		return p.vm.dispatch("describe", "", "")
	}
	name, err := json.Marshal(handler)
	if err != nil {
		return err
	}
	return p.vm.dispatch("begin", "", `{"handler":`+string(name)+`,"args":`+string(args)+`}`)
}

// settings is what the prelude must know of a phase. JavaScript numbers are
// too small for a seed, so it goes in halves.
func settings(header runHeader) string {
	text, err := json.Marshal(map[string]any{
		"now": header.Now, "hostCalls": header.Limits.HostCalls, "inFlight": header.Limits.InFlight,
		"seedHigh": uint32(header.Seed >> 32), "seedLow": uint32(header.Seed),
	})
	if err != nil {
		os.Exit(exitProtocol)
	}
	return string(text)
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
	e.Name, e.Message, e.Stack = cut(e.Name, mostText), cut(e.Message, mostText), cut(e.Stack, mostStackText)
	return e
}

// drain runs promise jobs until none is left or the phase is over.
func (p *phase) drain() {
	for more := true; more && !p.over(); {
		more = false
		p.enter(func() (err error) {
			more, err = p.vm.settle()
			return err
		})
	}
}

// starve ends a phase that waits for nothing. Memory may be the reason: an
// engine without memory drops promise jobs.
func (p *phase) starve() {
	if p.vm.full() {
		p.finish(ending{Limit: LimitHeap})
	}
	p.finish(ending{Never: true})
}

// swelled reports whether a script that threw null is likely to have met its
// limit of memory. What it held is mostly gone by now, so the process is asked
// how large it ever was.
func (p *phase) swelled() bool {
	return p.w.grown() >= p.limits.Heap/4*3 || p.vm.full()
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
		return p.vm.dispatch(op, strconv.FormatUint(uint64(f.id), 10), string(f.payload))
	})
	return false
}

// program returns the code of a program, asking for it when it is not here.
func (p *phase) program(version string) (program code, dropped bool) {
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
			program, err := p.w.engine.compile(shifted(string(f.payload)))
			if err != nil {
				p.take(err)
				return nil, false
			}
			p.w.keep(version, program)
			return program, false
		}
	}
}

// How many programs a worker keeps, and how many bytes of them.
const (
	mostPrograms = 64
	mostKept     = 16 << 20
)

func (w *workerSide) keep(version string, program code) {
	w.kept += len(program)
	if len(w.programs) >= mostPrograms || w.kept > mostKept {
		clear(w.programs)
		w.kept = len(program)
	}
	w.programs[version] = program
}
