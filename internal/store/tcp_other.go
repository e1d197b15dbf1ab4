//go:build !linux

package store

import (
	"syscall"
	"time"
)

// setUserTimeout: where the kernel has no such option, keepalive and the bounds
// of each statement must do.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
