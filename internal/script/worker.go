package script

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

// workerWord is the argument that makes the program a worker.
const workerWord = "pawl-script-worker"

// Exit codes of a worker.
const (
	exitDone     = 0 // the other side closed the pipe
	exitSetup    = 71
	exitProtocol = 72
	exitEngine   = 73
	exitCPU      = 74 // a script could not be stopped in another way
)

// isWorker reports whether this process was started as a worker.
func isWorker() bool { return len(os.Args) == 3 && os.Args[1] == workerWord }

// WorkerMain makes the process a worker when it was started as one, and then
// does not return. It must be the first statement of main, and of TestMain in
// packages whose tests run scripts: a pool starts the program that it is in.
func WorkerMain() {
	if !isWorker() {
		return
	}
	runtime.GOMAXPROCS(2) // the script, and the watch over it
	debug.SetMaxStack(workerStack)
	time.Local = time.UTC // the machine's zone is none of a script's business
	w := &workerSide{in: bufio.NewReaderSize(rawFile(0), 16<<10), programs: map[string]*prepared{}, memory: openMeter()}
	os.Exit(w.main())
}

// workerStack is the most a Go stack may take in a worker. The engine stops a
// script long before; the compiler has no limit of its own.
const workerStack = 256 << 20

// workerSide is the process that runs scripts, one at a time. Everything
// happens on one goroutine but the watch over processor time.
type workerSide struct {
	in     *bufio.Reader
	out    []byte // the frame being written
	engine engine

	programs  map[string]*prepared // by Program.Version
	kept      int                  // bytes of programs
	phase     *phase               // the one that runs, or nil
	lastCall  uint32               // ids are never used twice, so that a late answer finds nobody
	memory    meter
	startSize int64 // of the process, in bytes
}

func (w *workerSide) main() int {
	heap, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the heap limit:", err)
		return exitSetup
	}
	protection, confined, err := confine(heap, w.memory)
	if err != nil {
		fmt.Fprintln(os.Stderr, "confine the worker:", err)
		return exitSetup
	}
	w.startSize = w.memory.peak()
	greeting, err := json.Marshal(hello{
		Protocol: protocolVersion, Engine: engineName, Protection: protection, Confined: confined,
	})
	if err != nil {
		return exitSetup
	}
	w.send(frame{kind: fromHello, payload: greeting})
	if w.engine, err = newQuick(heap, func(op, text string) string { return w.phase.host(op, text) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitEngine
	}
	for {
		f, err := readFrame(w.in, toLimit)
		if err != nil {
			return exitDone
		}
		w.serve(f)
	}
}

// serve handles a frame that arrives between two phases. Answers and aborts
// are late ones, for a phase that has ended.
func (w *workerSide) serve(f frame) {
	switch f.kind {
	case toRun:
		w.run(f)
	case toCompile:
		w.compile(f)
	case toAnswer, toRefuse, toAbort:
	default:
		os.Exit(exitProtocol)
	}
}

// toLimit is how long frames to a worker may be.
func toLimit(k kind) int {
	switch k {
	case toCompile:
		return MaxSource + mostText
	case toProgram:
		return mostProgram
	case toRun, toAnswer, toRefuse:
		return mostPayload + mostEnding
	case toAbort:
		return 0
	default:
		return -1
	}
}

// mostProgram is the most bytes of compiled JavaScript, and of its source map.
const mostProgram = 16 << 20

// send writes a frame. A worker that cannot write has nobody to work for.
func (w *workerSide) send(f frame) {
	w.out = appendFrame(w.out[:0], f)
	if _, err := rawFile(1).Write(w.out); err != nil {
		os.Exit(exitDone)
	}
	if cap(w.out) > 1<<20 {
		w.out = nil
	}
}

func (w *workerSide) compile(f frame) {
	watch := startWatch(compileCPU, func() {}) // the compiler cannot be interrupted
	compiled := compilePayload(f.payload)
	watch.stop()
	text, err := json.Marshal(compiled)
	if err != nil {
		os.Exit(exitProtocol)
	}
	w.send(frame{kind: fromCompiled, id: f.id, payload: text})
}
