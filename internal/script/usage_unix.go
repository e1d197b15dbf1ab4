//go:build unix

package script

import (
	"io"
	"syscall"
	"time"
)

// processorTime is what this process has used, all threads together.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// rawFile is a file descriptor read and written with blocking system calls,
// on the goroutine that asks.
type rawFile int

func (f rawFile) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(int(f), b)
		if err == syscall.EINTR {
			continue
		}
		if n == 0 && err == nil && len(b) > 0 {
			return 0, io.EOF
		}
		return max(n, 0), err
	}
}

func (f rawFile) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := syscall.Write(int(f), b[written:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}
