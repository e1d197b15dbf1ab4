package api

import (
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	pawl "github.com/pawlrun/pawl"
)

// Instant is a time in an answer: UTC, RFC 3339, milliseconds, Z.
type Instant struct{ time.Time }

// instantOf turns the zero time into null.
func instantOf(t time.Time) *Instant {
	if t.IsZero() {
		return nil
	}
	return &Instant{t}
}

// MarshalJSON writes the one form that instants have in answers.
func (t Instant) MarshalJSON() ([]byte, error) { return json.Marshal(pawl.FormatTime(t.Time)) }

// UnmarshalJSON reads any RFC 3339 time.
func (t *Instant) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	var err error
	t.Time, err = time.Parse(time.RFC3339, text)
	return err
}

// Schema describes it for the OpenAPI document.
func (Instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2030-01-31T09:00:00.000Z"}}
}
