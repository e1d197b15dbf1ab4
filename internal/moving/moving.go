// Package moving turns what other schedulers were told into definitions of
// schedules: crontabs, timers of systemd, and CronJobs of Kubernetes. It is pure:
// it reads texts and writes YAML, with notes about what differs.
//
// What cannot be carried over is told with its place and its reason, and never
// dropped in silence. Names are made from the commands, so that the same text
// gives the same names; where two would be the same, a part of the hash of the
// line tells them apart.
package moving

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/when"
)

// Options are what a text is read with.
type Options struct {
	System bool      // of a crontab: lines have a user
	Zone   string    // that the machine's clock shows; empty is UTC
	Home   string    // where cron runs commands of a user; empty: unknown
	Now    time.Time // from which the next instants are told
}

// Result is what became of a text.
type Result struct {
	Schedules []Schedule
	Notes     []string // of the text as a whole
	Lost      []string // what could not be carried over, with its place and reason

	zones map[string]*time.Location // that were loaded
}

// Schedule is one definition.
type Schedule struct {
	Name      string
	From      string // where it came from: line 5, or backup.timer
	Text      string // what stood there
	Command   []string
	Dir       string
	Env       map[string]string
	Timeout   time.Duration
	Cron      []string
	Interval  string
	Timezone  string
	Ignoring  string // zone in which a cron that ignores CRON_TZ runs it; empty: it says no other zone
	Jitter    string
	Missed    string // last; empty: skip
	Within    time.Duration
	Policy    pawl.ConcurrencyPolicy
	Attempts  int64
	Suspended bool
	Notes     []string

	zone *time.Location // Timezone, once it is loaded
}

// YAML is the definition.
func (s Schedule) YAML() string {
	var b strings.Builder
	for line := range strings.Lines(s.From + ": " + s.Text) {
		b.WriteString("# " + printable(strings.TrimRight(line, "\n")) + "\n")
	}
	field := func(indent, name, value string) {
		if value != "" {
			b.WriteString(indent + name + ": " + value + "\n")
		}
	}
	field("", "kind", "schedule")
	field("", "name", nameOrText(s.Name))
	b.WriteString("run:\n")
	field("  ", "command", list(s.Command))
	field("  ", "dir", quoteIf(s.Dir))
	if len(s.Env) > 0 {
		b.WriteString("  env:\n")
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			field("    ", name, quote(s.Env[name]))
		}
	}
	if s.Timeout > 0 {
		field("  ", "timeout", when.FormatInterval(s.Timeout))
	}
	if len(s.Cron) == 1 {
		field("", "cron", quote(s.Cron[0]))
	} else if len(s.Cron) > 1 {
		field("", "cron", list(s.Cron))
	}
	field("", "interval", s.Interval)
	field("", "timezone", quoteIf(s.Timezone))
	field("", "jitter", s.Jitter)
	switch {
	case s.Missed != "" && s.Within > 0:
		field("", "missed", "{policy: "+s.Missed+", within: "+when.FormatInterval(s.Within)+"}")
	case s.Missed != "":
		field("", "missed", "{policy: "+s.Missed+"}")
	}
	if s.Attempts > 1 {
		field("", "retry", fmt.Sprintf("{attempts: %d}", s.Attempts))
	}
	field("", "concurrencyPolicy", string(s.Policy))
	if s.Suspended {
		field("", "enabled", "false")
	}
	return b.String()
}

// YAML is all definitions as one text of several documents.
func (r Result) YAML() string {
	var b strings.Builder
	for i, s := range r.Schedules {
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString(s.YAML())
	}
	return b.String()
}

// Next are the next instants of the definition.
func (s Schedule) Next(now time.Time, n int) []time.Time {
	times, err := s.times(now)
	if err != nil {
		return nil
	}
	return times.NextN(now, n)
}

// NextIgnoring are those of a cron that ignores CRON_TZ.
func (s Schedule) NextIgnoring(now time.Time, n int) []time.Time {
	if s.Ignoring != "" {
		s.Timezone, s.zone = s.Ignoring, nil
	}
	return s.Next(now, n)
}

func (s Schedule) times(now time.Time) (when.Schedule, error) {
	return when.Rule{Cron: s.Cron, Interval: s.Interval, Timezone: s.Timezone, Jitter: s.Jitter}.Schedule(when.Context{Anchor: now, Zone: s.zone})
}

// add keeps a definition, unless it is none that a server would take.
func (r *Result) add(s Schedule, now time.Time) {
	if r.zones == nil {
		r.zones = map[string]*time.Location{}
	}
	if _, known := r.zones[s.Timezone]; !known {
		r.zones[s.Timezone], _ = when.LoadZone(s.Timezone) // what is wrong with it is told below
	}
	s.zone = r.zones[s.Timezone]
	if _, err := s.times(now); err != nil {
		r.lose(s.From, s.Text, messageOf(err))
		return
	}
	if why := s.refused(); why != "" {
		r.lose(s.From, s.Text, why)
		return
	}
	r.Schedules = append(r.Schedules, s)
}

// refused is why a server would not take what the definition runs; empty: it would.
func (s Schedule) refused() (why string) {
	what := client.PlainRun{Command: s.Command, Dir: s.Dir, Env: s.Env}
	if s.Timeout > 0 {
		what.Timeout = when.FormatInterval(s.Timeout)
	}
	for _, text := range append(slices.Collect(maps.Values(s.Env)), append(s.Command, s.Dir)...) {
		if !utf8.ValidString(text) {
			return "its command is not UTF-8"
		}
	}
	work.Check(what, func(pointer, format string, values ...any) {
		if why == "" {
			why = fmt.Sprintf(format, values...)
		}
		if strings.HasPrefix(pointer, "/command/") && strings.Contains(strings.Join(s.Command, " "), "${") {
			why = "a command in a definition cannot have ${; write $NAME, or put the command into a script"
		}
	})
	return why
}

func (r *Result) lose(from, text, why string) {
	r.Lost = append(r.Lost, fmt.Sprintf("%s: %s\n  %s", from, printable(clip(text, 200)), why))
}

// name gives each schedule a name of its own.
func (r *Result) name() {
	count := map[string]int{}
	for _, s := range r.Schedules {
		count[s.Name]++
	}
	taken := map[string]bool{}
	for i := range r.Schedules {
		s := &r.Schedules[i]
		base := s.Name
		if count[base] > 1 {
			sum := sha256.Sum256([]byte(strings.Join(s.Cron, ";") + s.Interval + "\x00" + strings.Join(s.Command, "\x00")))
			s.Name = base + "-" + hex.EncodeToString(sum[:3])
		}
		for n := 2; taken[s.Name]; n++ {
			s.Name = fmt.Sprintf("%s-%d", strings.TrimSuffix(s.Name, fmt.Sprintf("-%d", n-1)), n)
		}
		taken[s.Name] = true
	}
}

var (
	notInName       = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	betweenCommands = regexp.MustCompile(`&&|\|\||;|\n`)
)

// nameOf makes a name out of a text.
func nameOf(text string) string {
	name := strings.Trim(notInName.ReplaceAllString(text, "-"), "-._")
	if name == "" {
		name = "job"
	}
	return strings.ToLower(strings.TrimRight(clip(name, 60), "-._"))
}

// commandName names a command of a shell by the program that it is about.
func commandName(command string) string {
	skip := []string{"cd", "test", "[", "[[", "env", "sudo", "nice", "ionice", "flock", "timeout", "exec", "command", "nohup", "sh", "bash", "time", "if", "then", "!", "set", "root"}
	for _, part := range betweenCommands.Split(command, -1) {
		words := strings.Fields(part)
		for i, word := range words {
			word = strings.Trim(word, `"'(){}`)
			base := path.Base(word)
			if i == 0 && slices.Contains([]string{"cd", "test", "[", "[[", "set"}, base) {
				break // says something about what follows
			}
			if word == "" || strings.HasPrefix(word, "-") || strings.Contains(word, "=") || slices.Contains(skip, base) || strings.Trim(word, "0123456789.smhd") == "" || i > 0 && strings.HasSuffix(base, ".lock") {
				continue
			}
			if name := nameOf(strings.TrimSuffix(strings.TrimSuffix(base, ".sh"), ".py")); name != "job" {
				return name
			}
		}
	}
	return "job"
}

// quote writes a text as a YAML scalar that is read back as it is: JSON is YAML.
func quote(text string) string {
	raw, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) // texts can be JSON
	out := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
	return out
}

// plain are the names that no reader of YAML takes for something else.
var plain = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// nameOrText is a name as it stands in YAML, where 0, true and no are no texts.
func nameOrText(name string) string {
	if plain.MatchString(name) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, name) {
		return name
	}
	return quote(name)
}

func quoteIf(text string) string {
	if text == "" {
		return ""
	}
	return quote(text)
}

func list(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = quote(text)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// printable is a text for a comment or a message.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xFEFF {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}

func messageOf(err error) string {
	if e, ok := err.(*pawl.Error); ok { //nolint:errorlint // package when returns it bare
		if len(e.Fields) > 0 {
			return e.Fields[0].Message
		}
		return e.Msg
	}
	return err.Error()
}
