package store

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
)

// Server is the server that last had a SQLite file, as its lock tells.
type Server struct {
	Addr string // that it listens on
	PID  int    // 0 if there is none
}

// ServerOf reads which server last had a SQLite file. It takes no lock: one that
// is just starting must not find the file taken.
func ServerOf(path string) Server {
	found := regexp.MustCompile(`^pawl at (\S+) \(process (\d+)\)$`).FindStringSubmatch(Holder(path))
	if found == nil {
		return Server{}
	}
	pid, err := strconv.Atoi(found[2])
	if err != nil {
		return Server{}
	}
	return Server{found[1], pid}
}

// Alive reports whether the process is there, or another one with its number.
func (s Server) Alive() bool {
	if s.PID == 0 {
		return false
	}
	process, err := os.FindProcess(s.PID)
	return err == nil && process.Signal(syscall.Signal(0)) == nil
}
