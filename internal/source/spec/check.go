package spec

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// The limits of a definition that no tag says.
const (
	mostBytes = 1 << 40

	longestTopic = 100  // characters
	longestText  = 4096 // bytes, as are those below
	longestName  = 128
)

// checker looks for what is wrong with a definition that was read from a
// document. Defaults are filled in, so a zero was written by somebody.
type checker struct {
	doc    definition.Document
	d      *Definition
	faults *definition.Faults
}

func (c checker) whole() {
	c.labels()
	c.schedule()
	c.execution()
	c.request()
	c.response()
	c.write()
	c.pagination()
	c.incremental()
	c.publish()
	c.terms()
}

// terms checks what the definition says about the source beside what it fetches.
func (c checker) terms() {
	fault := func(path []any, message, hint string) {
		c.add(definition.Pointer(path...), "%s; %s", message, hint)
	}
	terms.CheckKeep(c.d.Keep, fault)
	if c.d.Expect.Empty() {
		c.d.Expect = nil
	}
	about := terms.About{Kind: pawl.KindSource, Scheduled: true}
	if s, err := c.d.Schedule.When(); err == nil {
		about.Every = s.Interval()
	}
	terms.CheckExpect(c.d.Expect, about, fault)
}

// labels checks what a source is called.
func (c checker) labels() {
	c.text("/description", c.d.Description, longestText)
	for name, value := range c.d.Labels {
		pointer := "/labels" + definition.Pointer(name)
		if name == "" || len(name) > longestName || strings.ContainsFunc(name, unicode.IsSpace) || !printable(name) {
			c.add(pointer, "%s is not a name for a label", pawl.Quote(name))
		}
		c.text(pointer, value, longestName*2)
	}
}

func (c checker) schedule() {
	if c.faults.At("/schedule") {
		return
	}
	if c.d.Schedule.Limited() {
		c.limits()
		return
	}
	_, err := when.New(when.Spec{Interval: c.d.Schedule.Interval, Cron: c.d.Schedule.Cron, Timezone: c.d.Schedule.Timezone})
	if err == nil {
		return
	}
	message := err.Error()
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		message = e.Msg + "; " + e.Hint
	}
	c.add(schedulePlace(c.d.Schedule, err), "%s", strings.TrimSuffix(message, "; "))
}

// limits checks a schedule that says more than an interval or an expression. The
// interval has its default where nothing was written.
func (c checker) limits() {
	_, err := c.d.Schedule.When()
	e, _ := errors.AsType[*pawl.Error](err)
	switch {
	case err == nil:
	case e == nil || len(e.Fields) == 0:
		c.add("/schedule", "%s", err)
	default:
		for _, f := range e.Fields {
			c.add("/schedule"+f.Pointer, "%s", f.Full())
		}
	}
	timing.CheckWithin("/schedule/missed/within", c.within(), c.add)
}

func (c checker) within() string {
	if m := c.d.Schedule.Missed; m != nil {
		return m.Within
	}
	return ""
}

// schedulePlace guesses which field of a schedule an error is about.
func schedulePlace(s Schedule, err error) string {
	e, _ := errors.AsType[*pawl.Error](err)
	switch {
	case s.Interval != "" && s.Cron != "" || s.Interval == "" && s.Cron == "":
		return "/schedule"
	case s.Interval != "" && s.Timezone != "", e != nil && strings.Contains(e.Op, "zone"):
		return "/schedule/timezone"
	case s.Cron != "":
		return "/schedule/cron"
	}
	return "/schedule/interval"
}

func (c checker) execution() {
	c.interval("/execution/retryResetPeriod", c.d.Execution.RetryResetPeriod)
}

func (c checker) write() {
	w := c.d.Write
	targets := map[string]bool{}
	for _, field := range c.d.Response.Fields {
		targets[field.Target] = true
	}
	seen := map[string]bool{}
	for i, column := range w.Key {
		pointer := definition.Pointer("write", "key", i)
		switch {
		case seen[column]:
			c.add(pointer, "%s is in the key twice", pawl.Quote(column))
		case !targets[column] && !c.faults.At("/response/fields"):
			c.add(pointer, "%s is not the target of a field. %s", pawl.Quote(column), c.targetHint(column))
		}
		seen[column] = true
	}
	if w.Mode == Upsert && len(w.Key) == 0 {
		c.add("/write/key", "mode upsert needs a key: the columns by which a row is known, such as key: [id]")
	}
	if problem := tableProblem(c.d.Table); problem != "" {
		c.add("/table", "%s", problem)
	}
}

func (c checker) targetHint(column string) string {
	var targets []string
	for _, field := range c.d.Response.Fields {
		targets = append(targets, field.Target)
	}
	return pawl.Suggest(column, targets, "The key is made of columns of the table.")
}

func (c checker) publish() {
	if c.d.Publish == nil {
		return
	}
	for pointer, name := range map[string]string{"/publish/workflow": c.d.Publish.Workflow, "/publish/topic": c.d.Publish.Topic} {
		if name == "" || utf8.RuneCountInString(name) > longestTopic || strings.ContainsFunc(name, unicode.IsSpace) || !printable(name) {
			c.add(pointer, "%s is not a name", pawl.Quote(name))
		}
	}
}

func (c checker) add(pointer, format string, values ...any) { c.faults.Add(pointer, format, values...) }

// interval checks a length of time.
func (c checker) interval(pointer, text string) {
	if _, err := when.ParseInterval(text); err != nil {
		c.add(pointer, "%s is not a length of time such as 90s, 5m, 12h or 7d", pawl.Quote(text))
	}
}

// text checks a text for people.
func (c checker) text(pointer, text string, longest int) {
	switch {
	case len(text) > longest:
		c.add(pointer, "the text has %d bytes; at most %d are allowed", len(text), longest)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }):
		c.add(pointer, "the text has control characters")
	}
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
