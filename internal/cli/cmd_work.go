package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/process"
	"github.com/pawlrun/pawl/internal/visible"
	"github.com/pawlrun/pawl/internal/when"
)

const (
	// maxWorkResult is how much a program may write to stdout, in bytes.
	maxWorkResult = 1 << 20
	// workErrorTail is how much of stderr is told when a program fails, in bytes.
	workErrorTail = 2 << 10
	// exitLater is the exit code of a program that wants to be tried later, as
	// sysexits.h has it (EX_TEMPFAIL).
	exitLater = 75
	// workGrace is how long a program has to end that was told to.
	workGrace = 10 * time.Second
)

func newWorkCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "work TASK -- COMMAND [ARGUMENT...]", Short: "Serve a task by running a program for each job",
		Long: "Claims jobs of TASK, which pawl declare makes, and runs COMMAND for each:\n" +
			"the payload is its stdin, and its stdout is the result, as JSON. Exit code 0 is done, 75 gives\n" +
			"the job back for a while without counting an attempt, and any other is a failure, which is\n" +
			"tried again while the job has attempts. PAWL_JOB_ID, PAWL_TASK, PAWL_ATTEMPT, PAWL_LANE,\n" +
			"PAWL_KEY and TRACEPARENT tell about the job. SIGTERM lets programs end, and gives back the rest.",
		Example: "  pawl work send-email -- ./send-email.sh\n" +
			"  pawl work thumbnails --concurrency 4 -- python3 thumbnail.py --size 200",
		GroupID: groupStart, Args: takes(2, -1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	w := &workCommand{p: p, flags: addSettingFlags(cmd, forClient)}
	f := cmd.Flags()
	f.IntVar(&w.concurrency, "concurrency", 1, "run up to `N` programs at once")
	f.StringVar(&w.id, "worker-id", "", "be told as `NAME` to have the jobs (default the machine and the process)")
	f.StringVar(&w.later, "later", "10s", "when a job is tried again whose program ended with 75, as `TIME`")
	f.StringVar(&w.drain, "drain", "30s", "when stopping, let programs go on for `TIME`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() != 1 {
			return usageError("Usage: "+cmd.UseLine(), "the command goes after --")
		}
		return w.run(cmd.Context(), args[0], args[1:])
	}
	return cmd
}

// workCommand is one call of work.
type workCommand struct {
	p     *Process
	flags *settingFlags

	concurrency      int
	id, later, drain string

	command []string
	after   time.Duration
	stderr  io.Writer
}

func (w *workCommand) run(ctx context.Context, task string, command []string) (err error) {
	if w.concurrency < 1 || w.concurrency > 1000 {
		return usageError("", "--concurrency must be 1 to 1000")
	}
	if w.after, err = when.ParseInterval(w.later); err != nil {
		return usageError("", "--later: %s", err)
	}
	drain, err := when.ParseInterval(w.drain)
	if err != nil {
		return usageError("", "--drain: %s", err)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return usageError("Name a program that can be run.", "%s", err)
	}
	w.command = append([]string{path}, command[1:]...)
	c, err := w.flags.connect(w.p)
	if err != nil {
		return err
	}
	defer c.Close()
	w.stderr = &inTurn{to: w.p.Stderr}
	log := slog.New(slog.NewTextHandler(w.stderr, nil))
	return client.Worker{Client: c, Task: task, ID: w.id, Concurrency: w.concurrency, Drain: drain, Log: log, Do: w.do}.Run(ctx)
}

// do runs the program for a job.
func (w *workCommand) do(ctx context.Context, job client.ClaimedJob) (any, error) {
	out := &bounded{most: maxWorkResult}
	said := &process.Tail{Keep: workErrorTail}
	exit, err := process.Program{
		Command: w.command, Dir: w.p.Dir, Env: jobEnvironment(job), Stdin: bytes.NewReader(job.Payload), Stdout: out, Stderr: io.MultiWriter(w.stderr, said), Grace: workGrace,
		Mark: "PAWL_JOB_ID=" + job.ID,
	}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("the program could not be started: %w", err)
	}
	if exit != nil {
		return nil, w.failure(exit, said)
	}
	if out.total > maxWorkResult {
		return nil, client.Permanent(fmt.Errorf("the program wrote a result of %d bytes, more than the %d that are allowed", out.total, maxWorkResult))
	}
	text := bytes.TrimSpace(out.kept.Bytes())
	switch {
	case len(text) == 0:
		return nil, nil //nolint:nilnil // a job need not have a result
	case json.Valid(text):
		return json.RawMessage(text), nil
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil // the job is done, whatever it prints
}

// failure says how a program ended, with the last line that it wrote.
func (w *workCommand) failure(exit error, said *process.Tail) error {
	words := exit.Error()
	if last, _ := said.Last(); len(last) > 0 {
		lines := strings.Split(strings.TrimSpace(string(last)), "\n")
		words += ": " + visible.Text(lines[len(lines)-1])
	}
	if e, ok := errors.AsType[*exec.ExitError](exit); ok && e.ExitCode() == exitLater {
		return client.Snooze(w.after, words)
	}
	return errors.New(words)
}

// jobEnvironment is the environment of this process, and what there is to know about
// the job.
func jobEnvironment(job client.ClaimedJob) []string {
	env := append(os.Environ(),
		"PAWL_JOB_ID="+job.ID, "PAWL_TASK="+job.Task, "PAWL_ATTEMPT="+strconv.Itoa(job.Attempt), "PAWL_LANE="+string(job.Lane), "PAWL_KEY="+string(job.Key))
	if job.Traceparent != "" {
		env = append(env, "TRACEPARENT="+string(job.Traceparent))
	}
	return env
}

// bounded keeps the first bytes that are written to it, and counts all.
type bounded struct {
	most  int
	kept  bytes.Buffer
	total int64
}

func (b *bounded) Write(p []byte) (int, error) {
	b.total += int64(len(p))
	b.kept.Write(p[:min(len(p), max(0, b.most-b.kept.Len()))])
	return len(p), nil
}

// inTurn is written to by many.
type inTurn struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(p)
}
