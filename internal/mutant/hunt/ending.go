package main

import (
	"bytes"
	"strings"
)

// ending is how tests ended. It reads what they print and keeps none of it: one
// that a fault makes spin prints without end.
type ending struct {
	passed  bool
	leftOut bool
	hung    bool
	failed  string // the first test that failed, if one says so

	line []byte // what is not a whole line yet
}

// longLine is where a line is given up: none of ours is as long.
const longLine = 64 << 10

func (e *ending) Write(text []byte) (int, error) {
	written := len(text)
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if len(e.line)+len(line) <= longLine {
			e.line = append(e.line, line...)
		}
		if !whole {
			return written, nil
		}
		e.read(string(e.line))
		e.line, text = e.line[:0], rest
	}
}

func (e *ending) read(line string) {
	if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok && e.failed == "" {
		e.failed, _, _ = strings.Cut(name, " ")
	}
	e.leftOut = e.leftOut || strings.Contains(line, "--- SKIP: ")
	e.hung = e.hung || strings.HasPrefix(line, "panic: test timed out")
}
