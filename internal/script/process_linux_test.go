package script

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A worker whose script took much memory is not used again, also when the script let
// go of it before its end; one whose scripts took little is.
func TestWorkersThatBecameLargeAreReplaced(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_ = valueOf(t, p, "return 1", nil)
	first := idlePID(t, p)
	_ = valueOf(t, p, "return new Uint8Array(16 << 20).fill(1).length", nil)
	if pid := idlePID(t, p); pid != first {
		t.Errorf("a worker that held 16 MiB was replaced")
	}
	_ = valueOf(t, p, "let kept = new Uint8Array(110 << 20).fill(1); kept = null; return 1", nil)
	if idle, _, _ := p.state(); idle != 0 {
		t.Errorf("a worker that held 110 MiB is kept")
	}
	_ = valueOf(t, p, "return 1", nil)
	if pid := idlePID(t, p); pid == first {
		t.Errorf("a worker that held 110 MiB served another phase")
	}
}

// What starts workers lets the kernel wake their threads a little later, which they
// inherit; the server's own threads stay exact.
func TestThreadsOfWorkersMayWakeLate(t *testing.T) {
	threads := newStarter(false)
	t.Cleanup(threads.stop)
	slack := 0
	read := func() (err error) {
		slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		return err
	}
	if err := threads.do(read); err != nil || time.Duration(slack) != workerSlack {
		t.Errorf("threads of workers may wake %d ns late, %v", slack, err)
	}
	if err := read(); err != nil || time.Duration(slack) >= workerSlack {
		t.Errorf("threads of the server may wake %d ns late, %v", slack, err)
	}
}
