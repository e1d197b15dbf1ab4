package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

const (
	// endGrace is how long a program is waited for before it is told to end
	// in a stronger way.
	endGrace = 2 * time.Second
	// outputGrace is how long output is waited for after a program ended. The
	// pipes are open beyond that only if a process left the group.
	outputGrace = time.Second
)

// process is a running program with pipes to it. Everything that it starts is
// in its process group, unless it takes pains to leave that.
type process struct {
	cmd      *exec.Cmd
	in, out  *os.File // what it reads, what it writes
	says     *os.File // its standard error
	stopOnce sync.Once

	ended chan struct{} // closed when it is reaped, its group is killed and its standard error is read
	exit  error         // how it ended; valid after ended
}

// startProcess starts the program of a definition with nothing of Pawl's own
// environment but PATH.
func startProcess(ctx context.Context, cfg config, home string, stderr io.Writer) (*process, error) {
	theirIn, in, errIn := os.Pipe()
	out, theirOut, errOut := os.Pipe()
	says, theirSays, errSays := os.Pipe()
	if err := errors.Join(errIn, errOut, errSays); err != nil {
		closeAll(theirIn, in, out, theirOut, says, theirSays)
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	// A program is asked to end before it is killed, so no context ends it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), cfg.command[0], cfg.command[1:]...)
	cmd.Dir = cfg.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, cfg.env...) // the last of a name counts
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirSays
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	closeAll(theirIn, theirOut, theirSays)
	if err != nil {
		closeAll(in, out, says)
		return nil, fmt.Errorf("start the program: %w", connector.Reason(err))
	}
	p := &process{cmd: cmd, in: in, out: out, says: says, ended: make(chan struct{})}
	go p.reap(stderr)
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close() // pipes, or nil; nothing can be lost
	}
}

// reap waits for the program and kills what it left behind. While a member of
// the group lives, no other group can get its number.
func (p *process) reap(stderr io.Writer) {
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(stderr, p.says) }) // the end of it is no fault
	p.exit = p.cmd.Wait()
	p.signal(syscall.SIGKILL)
	_ = p.in.Close()                     // nobody reads it any more
	limit := time.Now().Add(outputGrace) // the last answers are still in the pipes
	_ = p.out.SetReadDeadline(limit)
	_ = p.says.SetReadDeadline(limit)
	reading.Wait()
	_ = p.says.Close() // only read from
	close(p.ended)
}

// stop makes the program end. It does not wait for that.
func (p *process) stop() {
	p.stopOnce.Do(func() { go p.escalate() })
}

func (p *process) escalate() {
	_ = p.in.Close() // the polite way: servers end when their input does
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-p.ended:
			return
		case <-time.After(endGrace):
			p.signal(signal)
		}
	}
}

// signal sends a signal to the group. That it is gone already is no fault.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// end makes the program end and waits until it and its output are gone.
func (p *process) end() {
	p.stop()
	<-p.ended
	_ = p.out.Close() // only read from; it may be closed already
}
