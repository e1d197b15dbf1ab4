package moving

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/when"
)

// Unit is a file of systemd.
type Unit struct {
	Name string // backup.timer
	Text string
}

// Systemd reads timers with the services that they start. A service whose unit
// was not given is told by name.
func Systemd(units []Unit, o Options) Result {
	var r Result
	services := map[string]sections{}
	for _, u := range units {
		if strings.HasSuffix(u.Name, ".service") {
			services[path.Base(u.Name)] = readUnit(u.Text)
		}
	}
	for _, u := range units {
		if strings.HasSuffix(u.Name, ".timer") {
			readTimer(&r, path.Base(u.Name), readUnit(u.Text), services, o)
		} else if !strings.HasSuffix(u.Name, ".service") {
			r.lose(u.Name, "", "it is neither a .timer nor a .service")
		}
	}
	r.name()
	return r
}

// sections are the values of a unit, by section and name. An empty value takes
// back those before it.
type sections map[string]map[string][]string

func (s sections) last(section, name string) string {
	if list := s[section][name]; len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

func readUnit(text string) sections {
	out, section := sections{}, ""
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		default:
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			if out[section] == nil {
				out[section] = map[string][]string{}
			}
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			if value == "" {
				out[section][name] = nil
			} else {
				out[section][name] = append(out[section][name], value)
			}
		}
	}
	return out
}

// bootTimes are settings that count from the start of something, which is no time
// of a clock.
func bootTimes() []string {
	return []string{"OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitInactiveSec"}
}

func readTimer(r *Result, from string, timer sections, services map[string]sections, o Options) {
	name := strings.TrimSuffix(from, ".timer")
	unit := timer.last("Timer", "Unit")
	if unit == "" {
		unit = name + ".service"
	}
	s := Schedule{Name: nameOf(name), From: from, Text: strings.Join(timer["Timer"]["OnCalendar"], ", "), Timezone: o.Zone, Policy: "Forbid"}
	for _, setting := range bootTimes() {
		if value := timer.last("Timer", setting); value != "" {
			r.lose(from, setting+"="+value, "it counts from a start, which is no time of a clock; write an interval")
		}
	}
	readCalendars(r, &s, timer["Timer"]["OnCalendar"])
	every := timer.last("Timer", "OnUnitActiveSec")
	if every != "" && len(s.Cron) > 0 {
		r.lose(from, "OnUnitActiveSec="+every, "a schedule has cron or interval, not both; write another one")
	} else if every != "" {
		d, err := span(every)
		if err != nil {
			r.lose(from, "OnUnitActiveSec="+every, err.Error())
			return
		}
		s.Interval, s.Text = when.FormatInterval(d), "every "+every
	}
	if len(s.Cron) == 0 && s.Interval == "" {
		if len(r.Lost) == 0 || !strings.HasPrefix(r.Lost[len(r.Lost)-1], from) {
			r.lose(from, "", "it has no OnCalendar= and no OnUnitActiveSec=")
		}
		return
	}
	if text := timer.last("Timer", "RandomizedDelaySec"); text != "" {
		if d, err := span(text); err != nil {
			r.lose(from, "RandomizedDelaySec="+text, err.Error())
		} else if d > 0 {
			s.Jitter = when.FormatInterval(d)
		}
	}
	if slices.Contains([]string{"true", "yes", "on", "1"}, timer.last("Timer", "Persistent")) {
		s.Missed = "last"
	}
	service, ok := services[unit]
	if !ok {
		r.lose(from, "Unit="+unit, "the service is not among the units: name its file, too")
		return
	}
	if why := readService(&s, service); why != "" {
		r.lose(from, unit, why)
		return
	}
	s.Notes = append(s.Notes, dropped(timer["Timer"], "OnCalendar", "OnUnitActiveSec", "Unit", "RandomizedDelaySec", "FixedRandomDelay", "Persistent", "AccuracySec", "OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitInactiveSec")...)
	r.add(s, o.Now)
}

// readCalendars takes the times of a timer. A schedule has one zone: that of the first.
func readCalendars(r *Result, s *Schedule, texts []string) {
	local := s.Timezone
	for _, text := range texts {
		expression, zone, err := calendarToCron(text)
		if zone == "" {
			zone = local
		}
		switch {
		case err != nil:
			r.lose(s.From, "OnCalendar="+text, err.Error())
			continue
		case len(s.Cron) == 0:
			s.Timezone = zone
		case zone != s.Timezone:
			r.lose(s.From, "OnCalendar="+text, fmt.Sprintf("its time zone is %s, and that of the times before it %s; write a schedule of its own", zone, s.Timezone))
			continue
		}
		s.Cron = append(s.Cron, expression)
	}
}

// dropped are notes about the settings of a section that nothing was made of.
func dropped(section map[string][]string, taken ...string) (notes []string) {
	for _, setting := range slices.Sorted(maps.Keys(section)) {
		for _, value := range section[setting] {
			if !slices.Contains(taken, setting) {
				notes = append(notes, fmt.Sprintf("%s=%s is not carried over", printable(setting), printable(clip(value, 100))))
			}
		}
	}
	return notes
}

// readService takes what a service runs. It returns why that cannot be carried
// over, empty if it can.
func readService(s *Schedule, service sections) string {
	start := service["Service"]["ExecStart"]
	if len(start) != 1 {
		return fmt.Sprintf("it has %d ExecStart=; one can be carried over", len(start))
	}
	words, err := splitWords(strings.TrimLeft(start[0], "-@:+!"))
	if err != nil || len(words) == 0 {
		return "its ExecStart= cannot be read"
	}
	for _, word := range words {
		if strings.Contains(word, "%") || strings.Contains(word, "$") {
			return fmt.Sprintf("its ExecStart= has %s, which systemd fills in", printable(word))
		}
	}
	s.Command = words
	s.Dir = strings.TrimPrefix(service.last("Service", "WorkingDirectory"), "-")
	for _, line := range service["Service"]["Environment"] {
		pairs, err := splitWords(line)
		if err != nil {
			return "its Environment= cannot be read"
		}
		for _, pair := range pairs {
			if name, value, ok := strings.Cut(pair, "="); ok {
				if s.Env == nil {
					s.Env = map[string]string{}
				}
				s.Env[name] = value
			}
		}
	}
	for _, setting := range []string{"RuntimeMaxSec", "TimeoutStartSec"} {
		if d, err := span(service.last("Service", setting)); err == nil && d > 0 {
			s.Timeout = d
			break
		}
	}
	s.Notes = append(s.Notes, dropped(withoutDefaults(service["Service"]), "ExecStart", "WorkingDirectory", "Environment", "RuntimeMaxSec", "TimeoutStartSec")...)
	if start[0][0] == '-' {
		s.Notes = append(s.Notes, "systemd takes every exit code for a success (ExecStart=-...); Pawl does not")
	}
	return ""
}

// withoutDefaults leaves out the types of a service whose command ends when its work does.
func withoutDefaults(service map[string][]string) map[string][]string {
	out := maps.Clone(service)
	if kind := service["Type"]; len(kind) > 0 && slices.Contains([]string{"oneshot", "simple", "exec"}, kind[len(kind)-1]) {
		delete(out, "Type")
	}
	return out
}

// span reads a length of time of systemd: 90, 5min, 1h 30min.
func span(text string) (time.Duration, error) {
	units := map[string]time.Duration{
		"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
		"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "hours": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
		"w": 168 * time.Hour, "week": 168 * time.Hour, "weeks": 168 * time.Hour,
	}
	var total time.Duration
	rest := strings.TrimSpace(text)
	if rest == "" {
		return 0, fmt.Errorf("%q is not a length of time", text)
	}
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		rest = strings.TrimLeft(rest[digits:], " ")
		letters := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))
		unit, ok := units[rest[:letters]]
		if err != nil || !ok {
			return 0, fmt.Errorf("%q is not a whole length of time in s, min, h, d or w", text)
		}
		total += time.Duration(n) * unit
		rest = strings.TrimLeft(rest[letters:], " ")
	}
	return total, nil
}

// splitWords cuts a line of systemd into words, with quotes and backslashes.
func splitWords(line string) (words []string, err error) {
	var b strings.Builder
	quote, inside := byte(0), false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			inside = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if inside {
				words = append(words, b.String())
			}
			b.Reset()
			inside = false
		default:
			b.WriteByte(c)
			inside = true
		}
	}
	if inside {
		words = append(words, b.String())
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed")
	}
	return words, nil
}
