package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// description is what describe and why write, piece by piece. Text of others
// cannot break its lines or reach the terminal with control codes.
type description struct {
	strings.Builder
	now time.Time
}

func newDescription(now time.Time) *description { return &description{now: now} }

// say writes a line of its own.
func (d *description) say(format string, args ...any) {
	d.WriteString(oneLine(fmt.Sprintf(format, args...)) + "\n")
}

// gap parts what follows from what is above.
func (d *description) gap() { d.WriteByte('\n') }

// line writes a name and its value; nothing for an empty one.
func (d *description) line(name, value string) {
	if value != "" {
		d.say("%-13s %s", name+":", value)
	}
}

// instant writes a name and a time, exactly and as seen from now.
func (d *description) instant(name string, t time.Time) {
	if !t.IsZero() {
		d.line(name, pawl.FormatTime(t)+" ("+relative(t, d.now)+")")
	}
}

// json writes a value over several lines below its name; nothing for null.
func (d *description) json(name string, raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, raw, "", "  ") != nil {
		return
	}
	d.say("%s:", name)
	text := unescapeHTML(pretty.String())
	for line := range strings.SplitSeq(visible.Text(text), "\n") {
		d.say("  %s", line)
	}
}

// unescapeHTML is JSON with the characters that encoding/json hides from browsers: a
// person reads it, and a command is full of them.
func unescapeHTML(text string) string {
	return strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
}

// table writes rows below a name; nothing if there are none.
func (d *description) table(name string, columns []column, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	d.gap()
	d.say("%s:", name)
	var text strings.Builder
	_ = newSheet(&Process{}, columns).write(&text, rows, true) // a builder takes everything
	for line := range strings.Lines(text.String()) {
		d.WriteString("  " + line)
	}
}
