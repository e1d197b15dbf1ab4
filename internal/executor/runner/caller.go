package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/internal/redact"
)

// Caller is in whose name a graph runs.
type Caller struct {
	AccountID string // the billing account that pays
	Key       Key    // the default key of that account; the zero Key: it has none
}

// Key is a secret that a graph knows the caller by. It is resolved for one
// attempt and is in memory only: whatever prints, logs or encodes a Key gets a
// word in its place. Executors give it to graphs where their definition says so
// (CallerKey), and nowhere else.
type Key struct {
	name  string
	value *string // behind a pointer, which is what is shown to who looks past the methods
}

// hidden is what is seen of a key.
const hidden = "[key]"

// NewKey makes a key; name is that of its variable, and stands for it in texts.
// A value that no header can hold is refused.
func NewKey(name, value string) (Key, error) {
	switch {
	case value == "":
		return Key{}, errors.New("it is empty")
	case strings.ContainsFunc(value, unicode.IsControl):
		return Key{}, errors.New("it holds a line break or another control character")
	}
	return Key{name: name, value: &value}, nil
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.value == nil }

// Reveal is the key itself, for the one request that needs it.
func (k Key) Reveal() string {
	if k.value == nil {
		return ""
	}
	return *k.value
}

// String hides the key.
func (Key) String() string { return hidden }

// GoString hides the key.
func (Key) GoString() string { return hidden }

// Format hides the key from every verb.
func (Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalJSON hides the key.
func (Key) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalText hides the key.
func (Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the key.
func (Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// Clean is a result without the key: a graph that is told a key may say it
// again.
func (k Key) Clean(r Result) Result {
	if k.IsZero() {
		return r
	}
	net := k.redactor()
	r.Message, r.TraceID = net.Text(r.Message), net.Text(r.TraceID)
	if r.Output != nil {
		r.Output = net.JSON(r.Output)
	}
	if r.Interrupt != nil {
		r.Interrupt = net.JSON(r.Interrupt)
	}
	return r
}

// CleanText is a text without the key.
func (k Key) CleanText(text string) string {
	if k.IsZero() {
		return text
	}
	return k.redactor().Text(text)
}

// CleanError is the error, or one of another text if that has the key in it.
func (k Key) CleanError(err error) error {
	if err == nil || k.IsZero() {
		return err
	}
	if text := k.CleanText(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

func (k Key) redactor() redact.Redactor {
	return redact.New([]redact.Secret{{Name: k.name, Value: k.Reveal()}})
}
