package script

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Workers in the background leave the processor to others; the rest do not.
func TestBackgroundWorkersYield(t *testing.T) {
	for _, background := range []bool{false, true} {
		p := newTestPool(t, Config{Workers: 1, Background: background})
		valueOf(t, p, `return 1`, nil)
		p.mu.Lock()
		pid := p.idle[0].cmd.Process.Pid
		p.mu.Unlock()
		own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		if err != nil {
			t.Fatal(err)
		}
		if lower := got < own; lower != background { // the kernel counts backwards here: 20 - niceness
			t.Errorf("background %v: priority %d, that of the server %d", background, got, own)
		}
	}
}
