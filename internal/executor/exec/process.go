package execprog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pawlrun/pawl/internal/executor/process"
	"github.com/pawlrun/pawl/internal/executor/runner"
)

// endGrace is how long a program is waited for that was told to end.
const endGrace = 2 * time.Second

// Limits of what a program writes.
const (
	largestAnswer = 16 << 20 // bytes
	longestLine   = 1 << 10  // bytes; the rest of a line is dropped
	mostLines     = 500      // that are told
)

var errTooMuch = fmt.Errorf("the program wrote more than the %d bytes that are read", largestAnswer)

// environment is what a program gets for one start. The last of a name counts.
func (g graph) environment(r runner.Run, key string) []string {
	env := append([]string{"PATH=" + os.Getenv("PATH")}, g.env...)
	if g.callerKey && !r.Caller.Key.IsZero() {
		env = append(env, callerVariable+"="+r.Caller.Key.Reveal())
	}
	return append(env, "PAWL_IDEMPOTENCY_KEY="+key)
}

// start runs the program to its end. An error means that it was not started;
// exit is how it ended, nil if it went well.
func (g graph) start(ctx context.Context, body []byte, env []string, output, talk interface{ Write([]byte) (int, error) }) (exit, err error) {
	return process.Program{
		Command: g.command, Dir: g.dir, Env: env, Stdin: bytes.NewReader(body), Stdout: output, Stderr: talk, Grace: endGrace,
		Mark: env[len(env)-1], // its key
	}.Run(ctx)
}

// answerOutput keeps what a program writes to its standard output.
type answerOutput struct {
	kept bytes.Buffer
	full func() // called when there is more than is kept
}

func (o *answerOutput) Write(p []byte) (int, error) {
	if o.kept.Len()+len(p) > largestAnswer {
		o.full()
		return 0, errTooMuch
	}
	return o.kept.Write(p)
}

func (o *answerOutput) bytes() []byte { return bytes.TrimSpace(o.kept.Bytes()) }

// talkOutput tells the lines that a program writes to its standard error. It
// never fails, because a program must not be stopped by its log, unless they
// cannot be told.
type talkOutput struct {
	emit   func(runner.Event) error
	failed func(error)
	line   []byte // the part of a line so far
	lines  int
	last   string
	fault  error // of emit
}

func (o *talkOutput) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		o.line = append(o.line, part[:min(len(part), longestLine-len(o.line))]...)
		if ended {
			o.endLine()
		}
		rest = after
	}
	return len(p), nil
}

func (o *talkOutput) endLine() {
	text := runner.Excerpt(string(o.line))
	o.line = o.line[:0]
	if text == "" || o.fault != nil {
		return
	}
	o.last = text
	o.lines++
	if o.lines > mostLines {
		return
	}
	if err := o.emit(runner.Progress(text)); err != nil {
		o.fault = err
		o.failed(err)
	}
}

// lastLine is the end of a message: what the program said last.
func (o *talkOutput) lastLine() string {
	if len(o.line) > 0 {
		o.endLine()
	}
	if o.last == "" {
		return ""
	}
	return ": " + o.last
}
