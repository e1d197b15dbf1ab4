package script

import (
	"os"
	"syscall"
	"time"
)

// ownProgram is the running program itself.
func ownProgram() (string, error) { return os.Executable() }

func workerAttributes() *syscall.SysProcAttr { return nil }

// processorTimeOf is not asked for here; workers watch themselves.
func processorTimeOf(int) (time.Duration, bool) { return 0, false }

// yieldThread does nothing: here a thread has no priority of its own.
func yieldThread() {}

// slackenThread does nothing: here a thread cannot be woken late.
func slackenThread() {}
