package connector

import (
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Duration reads a length of time such as 30s or 1m30s. A missing one is the
// default; one that is not between the limits is a fault.
func (s *Settings) Duration(name string, normal, least, most time.Duration) time.Duration {
	field, ok := s.measure(name)
	if !ok {
		return normal
	}
	d, err := time.ParseDuration(field.Value)
	switch {
	case err != nil:
		s.Refuse(field, "%s %s is not a length of time such as 30s or 2m", name, Quote(field.Written))
	case d < least || d > most:
		s.Refuse(field, "%s must be from %s to %s", name, least, most)
	default:
		return d
	}
	return normal
}

// Size reads a number of bytes such as 65536, 512KiB or 4MiB. A missing one
// is the default; one that is not from 1 to most is a fault.
func (s *Settings) Size(name string, normal, most int64) int64 {
	field, ok := s.measure(name)
	if !ok {
		return normal
	}
	n, ok := parseSize(field.Value)
	switch {
	case !ok:
		s.Refuse(field, "%s %s is not a size such as 512KiB or 4MiB", name, Quote(field.Written))
	case n < 1 || n > most:
		s.Refuse(field, "%s must be from 1 to %d bytes", name, most)
	default:
		return n
	}
	return normal
}

// measure reads a number with or without a unit. It is not ok if the field is
// missing, which is no fault, or something else.
func (s *Settings) measure(name string) (Field, bool) {
	node := s.find(name)
	if node == nil {
		return Field{}, false
	}
	if number, ok := unwrap(node.Value).(*ast.IntegerNode); ok {
		at := number.GetToken()
		return Field{Name: name, Written: at.Value, Value: at.Value, name: node.Key.GetToken(), value: at}, true
	}
	return s.text(name, node)
}

// parseSize reads a number of bytes; more than fits is the largest number.
func parseSize(text string) (int64, bool) {
	const digits = "0123456789"
	unit := strings.TrimLeft(text, digits)
	number := strings.TrimSuffix(text, unit)
	factor, known := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}[strings.TrimSpace(unit)]
	if number == "" || !known {
		return 0, false
	}
	const most = 1<<63 - 1
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > most/factor {
		return most, true
	}
	return n * factor, true
}
