// Package process runs programs of this machine, each in a process group of its
// own that ends as a whole: with the context of the run, with the program, and
// with this process.
package process

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// linger is how long output is waited for that others of the group hold open after
// the program has ended.
const linger = 2 * time.Second

// Program is what is run.
type Program struct {
	Command []string // the path of the program, and its arguments
	Dir     string
	Env     []string // all of its environment: NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Grace   time.Duration // from being told to end to being killed
	Mark    string        // an entry of Env that only this program has; the guard knows by it what is not yet told of
}

// Run runs the program to its end. When the context ends, its group is told to
// end, and killed after the grace; what it leaves behind in its group is killed
// too. An error means that it was not started; exit is how it ended, nil if it
// went well.
func (p Program) Run(ctx context.Context) (exit, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.Command[0], p.Command[1:]...) //nolint:noctx // the group ends with the context, below
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, p.Env, p.Stdin, p.Stdout, p.Stderr
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = linger
	keeper := guard() // before the program is there: to start it takes longer than a program needs to start others
	keeper.expect(p.Mark)
	if err := start(cmd); err != nil {
		keeper.met(p.Mark)
		return nil, err
	}
	group := cmd.Process.Pid
	keeper.watch(group)
	keeper.met(p.Mark)
	defer keeper.forget(group)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case exit = <-ended:
	case <-ctx.Done():
		exit = stop(group, p.Grace, ended)
	}
	signal(group, syscall.SIGKILL) // what it left behind
	if errors.Is(exit, exec.ErrWaitDelay) {
		exit = nil // it ended well, and something that it started held its output open
	}
	return exit, nil
}

// stop tells a group to end, and kills it if its program has not ended in time.
func stop(group int, grace time.Duration, ended <-chan error) error {
	signal(group, syscall.SIGTERM)
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case exit := <-ended:
		return exit
	case <-late.C:
		signal(group, syscall.SIGKILL)
		return <-ended
	}
}

// signal tells a group something. That it is gone is no fault.
func signal(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }
