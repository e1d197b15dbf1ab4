package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	clock    = "15:04:05.000"
	punctual = 50 * time.Millisecond // what still reads as "on time"
)

// story writes what happens, a line each.
type story struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
}

// tell writes what happened to a job.
func (st *story) tell(name string, h happening) {
	switch h.what {
	case succeeded:
		st.line(h.at, punctuality(h), h.job.Task, name+" → "+answer(h)+took(h), text.FgGreen)
	case retried:
		st.line(h.at, "failed", h.job.Task, fmt.Sprintf("%s → %s, to be tried again", name, reason(h.err)), text.FgYellow)
	case failed:
		st.line(h.at, "gave up", h.job.Task, fmt.Sprintf("%s → %s", name, reason(h.err)), text.FgRed)
	case cancelled:
		st.line(h.at, "cancelled", h.job.Task, name, text.FgHiBlack)
	}
}

// note writes something that is not an event of a job.
func (st *story) note(what, words string) {
	colour := text.FgHiBlack
	switch what {
	case "needs approval", "lost", "failed", "cut off": // what a person would want to see
		colour = text.FgYellow
	}
	st.line(time.Now(), what, "", words, colour)
}

func (st *story) line(at time.Time, what, task, words string, colour text.Color) {
	head := fmt.Sprintf("%-16s", what)
	if st.colour {
		head = colour.EscapeSeq() + head + text.Reset.EscapeSeq()
	}
	st.write(fmt.Sprintf("%s  %s  %-4s  %s\n", at.Local().Format(clock), head, task, words))
}

func (st *story) write(lines string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	_, _ = io.WriteString(st.out, lines) // a story that nobody hears goes on
}

// mark is a tick or a cross.
func (st *story) mark(ok bool) string {
	sign, colour := "✓", text.FgGreen
	if !ok {
		sign, colour = "✗", text.FgRed
	}
	if !st.colour {
		return sign
	}
	return colour.EscapeSeq() + sign + text.Reset.EscapeSeq()
}

// punctuality says how a job kept its time. One that waited for its lane was
// not late: it was not its turn.
func punctuality(h happening) string {
	switch d := h.late(); {
	case d < punctual:
		return "on time +" + millis(d)
	case h.job.Lane != "":
		return "its turn +" + seconds(d)
	default:
		return "late +" + seconds(d)
	}
}

// answer is what the desk said to a job that went well.
func answer(h happening) string {
	if h.status != 0 {
		return strconv.Itoa(h.status)
	}
	return "done"
}

// took is how long a job ran, if that was long.
func took(h happening) string {
	if d := h.at.Sub(h.started); d >= 100*time.Millisecond {
		return " in " + seconds(d)
	}
	return ""
}

// reason shortens an error: an answer to its status, others to what comes
// before the hint.
func reason(err string) string {
	if _, status, ok := strings.Cut(err, " answered "); ok {
		return status
	}
	short, _, _ := strings.Cut(err, " (")
	return short
}

func millis(d time.Duration) string  { return fmt.Sprintf("%d ms", d.Milliseconds()) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
