package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	document "github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/when"
)

// parseInto reads the texts of a setting into the variable it is for. All
// texts count for a list; of the others the last one wins.
func parseInto(target any, texts []string) (err error) {
	last := texts[len(texts)-1]
	switch t := target.(type) {
	case *string:
		*t = last
	case *[]string:
		*t = texts
	case *bool:
		*t, err = parseSwitch(last)
	case *int:
		*t, err = parseNumber(last)
	case *int64:
		*t, err = parseSize(last)
	case *time.Duration:
		*t, err = parseDuration(last)
	default:
		panic(fmt.Sprintf("a setting of type %T", target))
	}
	return err
}

// splitList parts a list that came as one text: paths as in PATH, words at
// commas.
func splitList(text string, paths bool) []string {
	separator := ","
	if paths {
		separator = string(os.PathListSeparator)
	}
	var parts []string
	for part := range strings.SplitSeq(text, separator) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// parseSwitch reads true or false, also as 1 and 0, on and off, yes and no.
func parseSwitch(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "1", "on", "yes":
		return true, nil
	case "false", "0", "off", "no":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}

// parseDuration reads 300s, 1h30m, 1d, or a bare number of seconds.
func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	d, err := when.ParseInterval(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write 300s, 5m or a number of seconds", s)
	}
	return d, nil
}

// parseSize reads 128MiB, 64kB, or a bare number of bytes.
func parseSize(s string) (int64, error) {
	n, ok := document.ParseSize(s)
	if !ok {
		return 0, fmt.Errorf("%q is not a size; write 128MiB, 64KiB or a number of bytes", s)
	}
	return n, nil
}

// formatValue writes a value as parseInto reads it.
func formatValue(target any) string {
	switch t := target.(type) {
	case *string:
		return *t
	case *[]string:
		return strings.Join(*t, ",")
	case *bool:
		return strconv.FormatBool(*t)
	case *int:
		return strconv.Itoa(*t)
	case *int64:
		return formatSize(*t)
	case *time.Duration:
		return strconv.FormatFloat(t.Seconds(), 'f', -1, 64) + "s"
	}
	panic(fmt.Sprintf("a setting of type %T", target))
}

func formatSize(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// deref is what a pointer points at; of nil it is the zero value.
func deref[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}
