package repair

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

const (
	// outputGrace is how long the pipes of a command are waited for after it
	// ended or was killed.
	outputGrace = time.Second
	// stderrKept is how much of the end of its error output is kept, in bytes:
	// more than is told, so that no secret is cut before it is found.
	stderrKept = 16 << 10
)

// Why a command was killed, other than by its caller.
var (
	errTooSlow = errors.New("the command took too long")
	errTooLong = errors.New("the command wrote too much")
)

// command asks a program: evidence as JSON on its standard input, the script
// on its standard output.
type command struct {
	cfg  Config
	name string
}

func (c *command) Name() string { return c.name }

// Propose runs the program. When it returns, the program and what that
// started in its process group are gone.
func (c *command) Propose(ctx context.Context, e Evidence) (Proposal, error) {
	evidence, err := json.Marshal(e)
	if err != nil {
		return Proposal{}, internal("the evidence cannot be written as JSON")
	}
	limited, stop := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTooSlow)
	defer stop()
	limited, kill := context.WithCancelCause(limited)
	defer kill(nil)

	out := &boundedOutput{limit: MaxScript, over: func() { kill(errTooLong) }}
	says := &tailOutput{}
	cmd := exec.CommandContext(limited, c.cfg.Command[0], c.cfg.Command[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.cfg.Env...) // the last of a name counts
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(evidence), out, says
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = outputGrace
	if err := cmd.Start(); err != nil {
		return Proposal{}, internal("the command cannot be started: %s", c.hide().text(reason(err)))
	}
	err = cmd.Wait()
	_ = killGroup(cmd) // what it left behind; mostly there is nothing
	if err != nil {
		return Proposal{}, c.explain(ctx, limited, err, says.String())
	}
	script := out.String()
	if err := checkScript(e, script); err != nil {
		return Proposal{}, err
	}
	return Proposal{Script: script, Explanation: c.hide().tail(says.String())}, nil
}

// explain says why the program gave no script.
func (c *command) explain(asked, limited context.Context, err error, says string) error {
	switch cause := context.Cause(limited); {
	case asked.Err() != nil:
		return cancelled(context.Cause(asked))
	case errors.Is(cause, errTooLong):
		return rejected("the proposed script has more than %d KiB", MaxScript>>10)
	case errors.Is(cause, errTooSlow):
		return &Error{Class: pawl.ClassTransient, Msg: c.quote("the command was ended after "+c.cfg.Timeout.String(), says)}
	case errors.Is(err, exec.ErrWaitDelay):
		return internal("the command ended, but something that it started kept its output open")
	}
	return internal("%s", c.quote("the command ended with "+reason(err), says))
}

// quote adds what the program said last.
func (c *command) quote(msg, says string) string {
	if strings.TrimSpace(says) == "" {
		return msg
	}
	return msg + ": " + c.hide().tail(says)
}

func (c *command) hide() hider {
	var h hider
	for _, entry := range c.cfg.Env {
		_, value, _ := strings.Cut(entry, "=")
		h.values = append(h.values, value)
	}
	return h
}

// reason is the text of an error without the path of the program.
func reason(err error) string {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// boundedOutput keeps up to limit bytes and calls over for more.
type boundedOutput struct {
	kept  bytes.Buffer
	limit int
	over  func()
}

func (o *boundedOutput) Write(p []byte) (int, error) {
	if o.kept.Len()+len(p) > o.limit {
		o.over()
		return 0, errTooLong
	}
	return o.kept.Write(p)
}

func (o *boundedOutput) String() string { return o.kept.String() }

// tailOutput keeps the last bytes. It never fails, so that no program is
// stopped by its log.
type tailOutput struct{ kept []byte }

func (o *tailOutput) Write(p []byte) (int, error) {
	o.kept = append(o.kept, p...)
	o.kept = o.kept[max(0, len(o.kept)-stderrKept):]
	return len(p), nil
}

func (o *tailOutput) String() string { return string(o.kept) }
