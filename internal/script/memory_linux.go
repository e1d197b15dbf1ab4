package script

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// meter tells how large this process is and ever was. It holds files open, because
// a worker cannot open one later. (getrusage is of no use here: its answer
// begins with the size of the process that started this one.)
type meter struct {
	status int // everything about the process, which the kernel takes long to write down
	sizes  int // a line of numbers
}

func openMeter() meter { return meter{openToRead("/proc/self/status"), openToRead("/proc/self/statm")} }

// openToRead returns -1 for a file that is not there.
func openToRead(path string) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// holds reports whether a file is one of the meter's.
func (m meter) holds(fd int) bool { return fd == m.status || fd == m.sizes }

// now is the memory that is in use, in bytes; 0 when it is not known.
func (m meter) now() int64 {
	var text [256]byte
	n, err := unix.Pread(m.sizes, text[:], 0)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text[:n], []byte(" ")) // what was asked for, then what is there
	pages, _, _ := bytes.Cut(rest, []byte(" "))
	count, err := strconv.ParseInt(string(pages), 10, 64)
	if err != nil {
		return 0
	}
	return count * pageSize
}

var pageSize = int64(os.Getpagesize()) //nolint:gochecknoglobals // it never changes

// peak is the most memory that was in use at once, in bytes; 0 when it is not
// known.
func (m meter) peak() int64 { return m.field("VmHWM:") }

// data is the memory that counts for RLIMIT_DATA, in bytes.
func (m meter) data() int64 { return m.field("VmData:") }

func (m meter) field(name string) int64 {
	var text [4 << 10]byte
	n, err := unix.Pread(m.status, text[:], 0)
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
