package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// attributes: a group of its own, whose first process dies with the thread that
// started it, which is there as long as this process is.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// starts are what the one thread that starts programs is asked for.
type starts struct {
	once sync.Once
	work chan func()
}

var starter starts //nolint:gochecknoglobals // the thread belongs to the process

// start starts a program on a thread that never ends.
func start(cmd *exec.Cmd) error {
	starter.once.Do(func() {
		starter.work = make(chan func())
		go func() {
			runtime.LockOSThread() // for good
			for do := range starter.work {
				do()
			}
		}()
	})
	done := make(chan error, 1)
	starter.work <- func() { done <- cmd.Start() }
	return <-done
}
