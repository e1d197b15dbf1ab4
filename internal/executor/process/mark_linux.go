package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// marked are the groups of processes that have one of the marks in their environment.
// What has left them on purpose, by setsid, is not among them.
func marked(marks map[string]bool) (groups []int) {
	ours, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	list, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone, or another user's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || !hasMark(string(text), marks) {
			continue
		}
		if its, err := unix.Getsid(pid); err != nil || its != ours {
			continue
		}
		if group, err := unix.Getpgid(pid); err == nil && group > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}

func hasMark(environ string, marks map[string]bool) bool {
	for entry := range strings.SplitSeq(environ, "\x00") {
		if entry != "" && marks[entry] {
			return true
		}
	}
	return false
}
