package contract

import (
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Instant is a time in JSON: UTC, RFC 3339, milliseconds, Z.
type Instant struct{ time.Time }

// InstantOf turns the zero time into nil.
func InstantOf(t time.Time) *Instant {
	if t.IsZero() {
		return nil
	}
	return &Instant{t.UTC()}
}

// TimeOf turns nil into the zero time.
func TimeOf(t *Instant) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// MarshalJSON writes the one form of instants.
func (t Instant) MarshalJSON() ([]byte, error) { return json.Marshal(pawl.FormatTime(t.Time)) }

// UnmarshalJSON reads any RFC 3339 time, down to the millisecond.
func (t *Instant) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, text)
	t.Time = at.UTC().Truncate(time.Millisecond)
	return err
}
