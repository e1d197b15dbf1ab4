package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/internal/redact"
)

// Limits of what is kept of the error output of a program.
const (
	longestLine = 1 << 10 // bytes; the rest of a line is dropped
	mostLines   = 500     // in the log, for each start of the program
	tailLines   = 5       // told when the program ends
)

// errorOutput takes what a program writes to its standard error: lines go to
// the log at the level debug.
type errorOutput struct {
	log    *slog.Logger
	redact redact.Redactor

	mu    sync.Mutex
	line  []byte // the part of a line so far
	lines int
	tail  []string
}

// Write never fails: a program must not be stopped by its log.
func (o *errorOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := p
	for len(rest) > 0 {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		o.line = append(o.line, part[:min(len(part), longestLine-len(o.line))]...)
		if ended {
			o.endLine()
		}
		rest = after
	}
	return len(p), nil
}

func (o *errorOutput) endLine() {
	text := o.redact.Text(strings.ToValidUTF8(strings.TrimRight(string(o.line), "\r"), "?"))
	o.line = o.line[:0]
	if text == "" {
		return
	}
	o.tail = append(o.tail, text)
	o.tail = o.tail[max(0, len(o.tail)-tailLines):]
	o.lines++
	switch {
	case o.lines < mostLines:
		o.log.LogAttrs(context.Background(), slog.LevelDebug, "the MCP server says", slog.String("line", text))
	case o.lines == mostLines:
		o.log.LogAttrs(context.Background(), slog.LevelDebug, "the MCP server says more than is shown")
	}
}

// last are the last lines.
func (o *errorOutput) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.tail, "\n")
}
