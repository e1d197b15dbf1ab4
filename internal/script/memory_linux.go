package script

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// meter tells how large this process ever was. It holds a file open, because
// a worker cannot open one later. (getrusage is of no use here: its answer
// begins with the size of the process that started this one.)
type meter struct{ fd int }

func openMeter() meter {
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return meter{fd: -1}
	}
	return meter{fd: fd}
}

// peak is the most memory that was in use at once, in bytes; 0 when it is not
// known.
func (m meter) peak() int64 { return m.field("VmHWM:") }

// data is the memory that counts for RLIMIT_DATA, in bytes.
func (m meter) data() int64 { return m.field("VmData:") }

func (m meter) field(name string) int64 {
	var text [4 << 10]byte
	n, err := unix.Pread(m.fd, text[:], 0)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text[:n], []byte("\n"+name))
	line, _, _ := bytes.Cut(rest, []byte(" kB"))
	kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
