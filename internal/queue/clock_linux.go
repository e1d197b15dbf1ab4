package queue

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that never goes back and also counts the time in which
// the machine was suspended. That of the runtime does not: a lease would look
// young to whoever was just woken.
func sinceBoot() time.Duration { return clock(unix.CLOCK_BOOTTIME) }
