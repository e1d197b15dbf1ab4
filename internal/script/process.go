package script

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// worker is a worker process as the pool sees it. Everything that comes from
// it is taken for hostile.
type worker struct {
	cmd    *exec.Cmd
	out    *os.File // what it writes
	reader *bufio.Reader
	said   *opening // of its standard error
	hello  hello

	gone chan struct{} // closed when the process has ended and was reaped

	mu     sync.Mutex // one frame at a time
	in     *os.File   // what it reads
	broken bool       // guarded by mu: a frame was not written whole
	phase  uint32     // guarded by mu: who may write, 0 for nobody

	runs      int             // also the id of the last phase
	knows     map[string]bool // programs that it ran, and may have ready; guarded by Pool.mu
	idleSince time.Time
}

const (
	startTime = 30 * time.Second // from exec to hello, on a machine that is very busy
	mostSaid  = 4 << 10
)

// startWorker starts a process and waits until it is confined and ready.
func startWorker(ctx context.Context, heap int64, threads *starter) (*worker, error) {
	cmd, err := workerCommand(heap)
	var w *worker
	if err == nil {
		w, err = launch(cmd, threads)
	}
	if err != nil {
		return nil, &pawl.Error{Code: pawl.CodeUnavailable, Op: "start a script worker", Msg: "the process does not start", Err: err}
	}
	if err := w.greet(ctx); err != nil {
		w.kill()
		<-w.gone
		if ctx.Err() != nil {
			return nil, fmt.Errorf("start a script worker: %w", context.Cause(ctx))
		}
		return nil, &pawl.Error{
			Code: pawl.CodeUnavailable, Op: "start a script worker", Msg: "it does not answer: " + w.epitaph(),
			Hint: "main and TestMain must call script.WorkerMain first", Err: err,
		}
	}
	return w, nil
}

// workerCommand is how a worker is started.
func workerCommand(heap int64) (*exec.Cmd, error) {
	program, err := ownProgram()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{ // it outlives the call that starts it
		Path: program, Args: []string{"pawl", workerWord, strconv.FormatInt(heap, 10)},
		Env: []string{}, Dir: "/", SysProcAttr: workerAttributes(),
	}, nil
}

func launch(cmd *exec.Cmd, threads *starter) (*worker, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeFile(childIn)
	out, childOut, err := os.Pipe()
	if err != nil {
		closeFile(in)
		return nil, err
	}
	defer closeFile(childOut)
	w := &worker{
		cmd: cmd, out: out, in: in, reader: bufio.NewReaderSize(out, 16<<10),
		said: &opening{}, gone: make(chan struct{}),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, w.said
	if err := threads.do(cmd.Start); err != nil {
		closeFile(in)
		closeFile(out)
		return nil, err
	}
	go w.reap()
	return w, nil
}

// reap waits for the end of the process.
func (w *worker) reap() {
	_ = w.cmd.Wait() // ProcessState has the answer
	close(w.gone)
}

func (w *worker) greet(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.wake)()
	if err := w.out.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return err
	}
	f, err := readFrame(w.reader, func(k kind) int {
		if k == fromHello {
			return mostHello
		}
		return -1
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(f.payload, &w.hello); err != nil || w.hello.Protocol != protocolVersion {
		return errProtocol
	}
	return nil
}

// note remembers that the worker has a program.
func (w *worker) note(program string) {
	if w.knows == nil || len(w.knows) > 2*mostPrograms {
		w.knows = map[string]bool{}
	}
	w.knows[program] = true
}

// begin gives the worker to a phase, and end takes it back.
func (w *worker) begin() (id uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	w.phase = uint32(w.runs)
	return w.phase
}

func (w *worker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = 0
}

// write sends a frame for a phase; one that comes after the phase's end is
// dropped. After an error the worker is of no use.
func (w *worker) write(phase uint32, f frame) error {
	wire := appendFrame(make([]byte, 0, headerSize+len(f.payload)), f)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case phase != w.phase:
		return nil
	case w.broken:
		return errTorn
	}
	if _, err := w.in.Write(wire); err != nil {
		w.broken = true
		return fmt.Errorf("write to a script worker: %w", err)
	}
	return nil
}

// setDeadlines bounds reads and writes; a zero time is no bound.
func (w *worker) setDeadlines(read, write time.Time) error {
	return errors.Join(w.out.SetReadDeadline(read), w.in.SetWriteDeadline(write))
}

// wake makes a pending read return.
func (w *worker) wake() { _ = w.out.SetReadDeadline(time.Unix(1, 0)) } // fails only when it is closed

// alive reports whether the process has not ended.
func (w *worker) alive() bool {
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
}

// kill ends the process at once and frees what the pool holds of it. Whoever
// needs to know that it has ended waits for gone.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // it may have ended already
	closeFile(w.in)
	closeFile(w.out)
}

// closeFile closes a pipe; there is nothing in it that could be lost.
func closeFile(f *os.File) { _ = f.Close() }

// epitaph says how the process ended, once it has.
func (w *worker) epitaph() string {
	state := "still running"
	if !w.alive() {
		state = w.cmd.ProcessState.String()
	}
	if said := strings.TrimSpace(w.said.String()); said != "" {
		return state + ": " + firstLine(said)
	}
	return state
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return visible.Truncate(line, 300)
}

// opening keeps the beginning of what is written to it, where Go says why a
// process ends, and drops the rest.
type opening struct {
	mu   sync.Mutex
	text []byte
}

func (o *opening) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b[:min(len(b), mostSaid-len(o.text))]...)
	return len(b), nil
}

func (o *opening) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// starter runs functions on one thread that lives as long as the pool. The
// kernel kills a worker when the thread that started it ends, and Go ends
// threads as it likes.
type starter struct{ jobs chan func() }

func newStarter(background bool) *starter {
	s := &starter{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread() // and never unlocks it: the thread ends with this
		slackenThread()        // what it starts inherits that
		if background {
			yieldThread() // what it starts inherits that
		}
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

func (s *starter) do(f func() error) error {
	done := make(chan error, 1)
	s.jobs <- func() { done <- f() }
	return <-done
}

func (s *starter) stop() { close(s.jobs) }

// errTooEarly is a pool inside a worker: main did not call WorkerMain first,
// and every worker would start workers of its own.
var errTooEarly = errors.New("this process is a script worker: main must call script.WorkerMain first")
