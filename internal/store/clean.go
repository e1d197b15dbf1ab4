package store

import (
	"reflect"
	"strings"
)

// Text that PostgreSQL refuses (NUL, and what is not UTF-8) must not keep a
// transaction from being written, nor mean one thing on one database and
// another on the other. So every value of every statement passes through
// cleanArgs, on both: what cannot be stored is replaced by U+FFFD.

// cleanArgs cleans the values of a statement. The list of the caller is left as
// it is; it is copied only if there is something to clean.
func cleanArgs(args []any) []any {
	for i, a := range args {
		c, dirty := cleanArg(a)
		if !dirty {
			continue
		}
		out := append([]any{}, args...)
		out[i] = c
		for k := i + 1; k < len(out); k++ {
			if c, dirty := cleanArg(out[k]); dirty {
				out[k] = c
			}
		}
		return out
	}
	return args
}

// cleanArg tells whether a value must be replaced, and by what.
func cleanArg(a any) (clean any, dirty bool) {
	switch v := a.(type) {
	case nil, int, int64, *int64, bool, []int64, []int, float64:
		return nil, false
	case string:
		return cleaned(v), !Storable(v)
	case *string:
		if v == nil || Storable(*v) {
			return nil, false
		}
		s := cleaned(*v)
		return &s, true
	case []string:
		return cleanList(v, Storable, cleaned)
	case []*string:
		return cleanList(v, func(s *string) bool { return s == nil || Storable(*s) }, func(s *string) *string {
			if s == nil {
				return nil
			}
			c := cleaned(*s)
			return &c
		})
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.String {
		return cleaned(v.String()), !Storable(v.String())
	}
	return nil, false
}

func cleanList[T any](list []T, isClean func(T) bool, clean func(T) T) (any, bool) {
	for _, s := range list {
		if isClean(s) {
			continue
		}
		out := make([]T, len(list))
		for i, s := range list {
			out[i] = clean(s)
		}
		return out, true
	}
	return nil, false
}

// cleanJSON takes the NUL out of the strings of a JSON text, where it is an
// escape; what is not UTF-8 the encoder has replaced.
func cleanJSON(text string) string {
	if !strings.Contains(text, `\u0000`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		if strings.HasPrefix(text[i:], `\u0000`) {
			b.WriteString(`\ufffd`)
			i += 5
			continue
		}
		b.WriteString(text[i : i+2]) // another escape, a backslash perhaps
		i++
	}
	return b.String()
}
