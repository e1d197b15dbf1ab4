//go:build !linux

package queue

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that never goes back. On macOS it also counts the time in
// which the machine was suspended.
func sinceBoot() time.Duration { return clock(unix.CLOCK_MONOTONIC) }
