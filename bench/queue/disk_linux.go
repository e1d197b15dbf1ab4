package main

import (
	"fmt"
	"io"
	"syscall"
)

const tmpfsMagic = 0x01021994

// warnMemoryDisk says so when the databases would be in memory, where waiting
// for the disk costs nothing.
func warnMemoryDisk(dir string, w io.Writer) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err == nil && fs.Type == tmpfsMagic {
		fmt.Fprintln(w, "warning: the databases are on a file system in memory; give -dir a directory on a disk")
	}
}
