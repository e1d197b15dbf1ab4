package script

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownProgram is the running program itself, also after its file was replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// workerAttributes ties a worker to the server's life, and keeps the signals
// of a terminal away from it: the server decides when workers end.
func workerAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// backgroundNice is the niceness of workers in the background.
const backgroundNice = 15

// yieldThread lowers the priority of the thread that calls it, and of every
// process that it starts.
func yieldThread() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, backgroundNice) } // more is never refused

// workerSlack is how much later than they asked for threads of a worker may wake up.
// Nothing in a worker is so exact; but the runtime of Go looks every 20 µs what its
// processors do while one of them is in use, and for some milliseconds after.
const workerSlack = time.Millisecond

// slackenThread lets the kernel wake the thread that calls it, and all threads of every
// process that it starts, a little later than they ask for.
func slackenThread() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(workerSlack), 0, 0, 0) // else it is as it was
}

// processorTimeOf is what another process has used.
func processorTimeOf(pid int) (time.Duration, bool) {
	const processClock = 2 // the clock of a whole process, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|processClock), &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
