package cli

import (
	"fmt"
	"strings"
	"time"
)

// progressLine shows how far something has come that takes longer than a
// second: a line that is written over, on a terminal only. Its zero value with
// a process is ready.
type progressLine struct {
	p *Process

	since time.Time
	last  time.Time
	wide  int // characters that are on the line
}

const (
	progressAfter = time.Second
	progressEvery = 100 * time.Millisecond
)

// show tells of what was done of a total, zero or less if that is not known.
func (l *progressLine) show(text string, done, total int64) {
	now := time.Now()
	if l.since.IsZero() {
		l.since = now
	}
	if !l.p.StderrTerminal || now.Sub(l.since) < progressAfter || now.Sub(l.last) < progressEvery {
		return
	}
	l.last = now
	line := fmt.Sprintf("%s: %d", text, done)
	if total > 0 {
		line = fmt.Sprintf("%s: %d of %d (%d %%)", text, done, total, min(100*done/total, 100))
	}
	_, _ = fmt.Fprintf(l.p.Stderr, "\r%s%s", line, strings.Repeat(" ", max(l.wide-len(line), 0)))
	l.wide = len(line)
}

// end removes the line, if there is one.
func (l *progressLine) end() {
	if l.wide > 0 {
		_, _ = fmt.Fprintf(l.p.Stderr, "\r%s\r", strings.Repeat(" ", l.wide))
		l.wide = 0
	}
}
