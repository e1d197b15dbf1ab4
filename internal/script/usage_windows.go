package script

import (
	"os"
	"syscall"
	"time"
)

// processorTime is what this process has used, all threads together.
func processorTime() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	return units(kernel) + units(user)
}

// units reads a duration: 64 bits of 100 ns each.
func units(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

// rawFile is one of the standard files.
type rawFile int

func (f rawFile) file() *os.File {
	if f == 0 {
		return os.Stdin
	}
	return os.Stdout
}

func (f rawFile) Read(b []byte) (int, error)  { return f.file().Read(b) }
func (f rawFile) Write(b []byte) (int, error) { return f.file().Write(b) }
