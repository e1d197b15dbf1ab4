package main

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	memoryFolder = "/dev/shm"
	memoryNeeded = 2 << 30 // bytes
)

// inMemory makes a folder in memory, where waiting for the disk costs nothing,
// or returns "" where there is too little, or where programs would not start.
func inMemory() string {
	var fs unix.Statfs_t
	if err := unix.Statfs(memoryFolder, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return ""
	}
	if fs.Flags&unix.ST_NOEXEC != 0 || fs.Bavail*uint64(fs.Bsize) < memoryNeeded { //nolint:gosec // a size of blocks is small
		return ""
	}
	dir, err := os.MkdirTemp(memoryFolder, "pawl-tests-")
	if err != nil {
		return ""
	}
	// As /tmp: a PostgreSQL of another user makes and removes folders in it.
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil { //nolint:gosec // see above
		_ = os.RemoveAll(dir)
		return ""
	}
	return dir
}
