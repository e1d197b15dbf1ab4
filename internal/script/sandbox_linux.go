package script

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// confine takes from the process, before it has read anything, what a script
// could misuse if it broke out of the engine: files, sockets, other processes,
// endless memory. What is left is reading and writing the pipes it was given.
func confine(heap int64, memory meter) (protection string, confined bool, err error) {
	// When memory runs out, workers go before the server.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // best effort
	if err := closeInherited(memory); err != nil {
		return "", false, err
	}
	if err := limitResources(heap, memory); err != nil {
		return "", false, err
	}
	// Some containers forbid filters. Scripts then run with what is left, and
	// the pool says so.
	if missing := filterCalls(); missing != nil {
		return "resource limits; no system call filter: " + missing.Error(), false, nil //nolint:nilerr // it is told, not fatal
	}
	return "resource limits and a system call filter", true, nil
}

// closeInherited closes files that whoever started Pawl left open for its
// children. The runtime's own are anonymous and stay, and so does the meter.
func closeInherited(memory meter) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil //nolint:nilerr // without /proc there is no list; Pawl's own files are closed on exec
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 || memory.holds(fd) {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:") {
			continue // gone meanwhile, or the runtime's poller
		}
		if err := unix.Close(fd); err != nil && err != unix.EBADF {
			return fmt.Errorf("close inherited file %d: %w", fd, err)
		}
	}
	return nil
}

// limitResources sets limits of the kernel. Memory is counted from what the
// process has now, since some builds reserve much at the start.
func limitResources(heap int64, memory meter) error {
	data := uint64(memory.data() + arenaSize(heap) + 3*heap + 128<<20)
	for _, limit := range []struct {
		resource int
		most     uint64
		what     string
	}{
		{unix.RLIMIT_DATA, data, "memory"},
		{unix.RLIMIT_CORE, 0, "core files"},
		{unix.RLIMIT_FSIZE, 0, "written files"},
		{unix.RLIMIT_NOFILE, 16, "open files"},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return fmt.Errorf("limit %s: %w", limit.what, err)
		}
	}
	return nil
}
