package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"
)

// Process is everything a command knows of the process it runs in.
type Process struct {
	Args   []string // without the name of the program
	Getenv func(string) string
	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // talk
	Dir    string    // where relative paths start; empty is the working directory

	StdinTerminal  bool
	StdoutTerminal bool
	StderrTerminal bool
	Width          int // columns of the terminal; 0 is unknown, and nothing is cut

	// Patience is how long to wait for a server on this machine that does not
	// listen yet.
	Patience time.Duration
}

// patience is enough for a server that was started by the command before.
const patience = 3 * time.Second

// ThisProcess is the process that the operating system started.
func ThisProcess() *Process {
	p := &Process{
		Args: os.Args[1:], Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Patience:       patience,
	}
	if p.StdoutTerminal {
		if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			p.Width = width
		}
	}
	return p
}

// path returns where a file is that the user named.
func (p *Process) path(name string) string {
	if name == "" || p.Dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}

// asks says whether there is somebody to answer a question.
func (p *Process) asks() bool { return p.StdinTerminal && p.StderrTerminal }

// paint says whether text for that kind of output may carry colour.
func (p *Process) paint(terminal bool) bool {
	return terminal && p.Getenv("NO_COLOR") == "" && !strings.EqualFold(p.Getenv("TERM"), "dumb")
}
