package moving

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/when"
)

// Crontab reads a crontab.
func Crontab(text string, o Options) Result {
	var r Result
	c := crontab{Options: o, env: map[string]string{}, shell: "/bin/sh", zone: o.Zone}
	n := 0
	for line := range strings.Lines(text) {
		n++
		c.line(&r, fmt.Sprintf("line %d", n), strings.TrimRight(line, "\r\n"))
	}
	r.name()
	return r
}

// crontab is what the lines so far say about those that follow.
type crontab struct {
	Options
	env    map[string]string
	shell  string
	zone   string
	jitter string
	mailed bool // it was told what became of MAILTO
}

var cronEnv = regexp.MustCompile(`^[ \t]*("[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*?)[ \t]*$`)

func (c *crontab) line(r *Result, from, line string) {
	trimmed := strings.TrimLeft(line, " \t")
	if trimmed == "" || trimmed[0] == '#' {
		return
	}
	if m := cronEnv.FindStringSubmatch(line); m != nil {
		c.set(r, from, strings.Trim(m[1], `"'`), unquote(m[2]))
		return
	}
	fields := 5
	if trimmed[0] == '@' {
		fields = 1
	}
	if c.System {
		fields++
	}
	words, rest := cut(trimmed, fields)
	if len(words) < fields || rest == "" {
		why := "it has too few fields: minute, hour, day of month, month, day of week, command"
		if c.System {
			why = "it has too few fields: minute, hour, day of month, month, day of week, user, command"
		}
		r.lose(from, line, why)
		return
	}
	s := Schedule{From: from, Text: trimmed, Timezone: c.zone, Dir: c.Home, Jitter: c.jitter, Policy: "Allow"}
	if c.System {
		user := words[fields-1]
		words, s.Dir = words[:fields-1], ""
		s.Notes = append(s.Notes, "cron runs it as the user "+printable(user)+"; Pawl runs it as the user of the server")
	}
	if c.zone != c.Zone {
		s.Ignoring = cmp.Or(c.Zone, "UTC")
	}
	expression := strings.Join(words, " ")
	if strings.EqualFold(expression, "@reboot") {
		r.lose(from, line, "@reboot runs when cron starts, which is no time of a clock. Start it with the machine instead: a unit of systemd with WantedBy=multi-user.target, for one")
		return
	}
	s.Cron = []string{expression}
	c.command(&s, rest)
	r.add(s, c.Now)
}

// command makes the command of a line, whose first % ends it and begins its
// standard input.
func (c *crontab) command(s *Schedule, text string) {
	command, input, piped := splitPercent(text)
	s.Name = commandName(command)
	s.Command = []string{c.shell, "-c", command}
	if piped {
		s.Command = []string{"/bin/sh", "-c", `printf %s "$1" | "$0" -c "$2"`, c.shell, input, command}
		s.Notes = append(s.Notes, "what follows % is its standard input")
	}
	for name, value := range c.env {
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = value
		if strings.Contains(value, "${") {
			s.Notes = append(s.Notes, fmt.Sprintf("cron takes %s as it stands; Pawl puts in the value of ${...}", name))
		}
	}
	slices.Sort(s.Notes)
	if home := c.env["HOME"]; home != "" {
		s.Dir = home
	}
}

// set takes a line NAME = value.
func (c *crontab) set(r *Result, from, name, value string) {
	switch name {
	case "CRON_TZ":
		if _, err := when.LoadZone(value); err != nil {
			r.lose(from, name+"="+value, messageOf(err))
			return
		}
		c.zone = value
		r.Notes = append(r.Notes, fmt.Sprintf("%s: CRON_TZ=%s is the time zone of the lines below it. The cron of Debian ignores it, others follow it.", from, value))
	case "SHELL":
		if value != "" {
			c.shell = value
		}
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		if !c.mailed {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %s is not carried over: Pawl keeps the output with each slot. See notifications for mail about failures.", from, name))
		}
		c.mailed = true
	case "RANDOM_DELAY":
		c.jitter = ""
		if d, err := when.ParseInterval(value + "m"); err == nil {
			c.jitter = when.FormatInterval(d)
		} else if value != "0" {
			r.lose(from, name+"="+value, "it is not a number of minutes")
		}
	default:
		c.env[name] = value
	}
}

// splitPercent cuts a command at its first % that is not escaped. In what follows,
// each further one is the end of a line. As cron does, it ends the last line if that
// is not ended yet.
func splitPercent(text string) (command, input string, piped bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '%':
			b.WriteByte('%')
			i++
		case text[i] != '%':
			b.WriteByte(text[i])
		case !piped:
			command, piped = b.String(), true
			b.Reset()
		default:
			b.WriteByte('\n')
		}
	}
	if !piped {
		return b.String(), "", false
	}
	input = b.String()
	if input != "" && !strings.HasSuffix(input, "\n") {
		input += "\n"
	}
	return command, input, true
}

// cut takes the first n words off a text.
func cut(text string, n int) (words []string, rest string) {
	for range n {
		text = strings.TrimLeft(text, " \t")
		end := strings.IndexAny(text, " \t")
		if end < 0 {
			if text != "" {
				words = append(words, text)
			}
			return words, ""
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words, strings.TrimLeft(text, " \t")
}

// unquote takes off the quotes around a value.
func unquote(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}
