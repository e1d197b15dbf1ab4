package client

import (
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Instant is a point in time as the API writes it: UTC, RFC 3339, milliseconds,
// Z. The zero time is null on the wire, and null is read as the zero time, so
// that IsZero tells whether there is one.
type Instant struct{ time.Time }

// At is t as an Instant.
func At(t time.Time) Instant { return Instant{Time: t} }

// MarshalJSON writes the one form of instants, or null for the zero time.
func (t Instant) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(pawl.FormatTime(t.Time))
}

// UnmarshalJSON reads any RFC 3339 time, down to the millisecond, or null.
func (t *Instant) UnmarshalJSON(raw []byte) error {
	*t = Instant{}
	if string(raw) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, text)
	t.Time = at.UTC().Truncate(time.Millisecond)
	return err
}

// NullString is a text that is null on the wire when it is empty; null is read
// as the empty text. Compare it with "" to see whether there is one.
type NullString string

// MarshalJSON writes the text, or null if it is empty.
func (s NullString) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}
