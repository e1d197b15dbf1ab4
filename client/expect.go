package client

import (
	"encoding/json"
	"strconv"
)

// Expect is what a definition expects of its lane. What is not met needs attention.
type Expect struct {
	FreshWithin string     `json:"freshWithin,omitempty" definition:"nonempty" example:"2h" doc:"The newest success is never older than this."`
	DoneBy      string     `json:"doneBy,omitempty" definition:"nonempty" example:"07:00" doc:"A time of day, in the zone of its schedule: each day on which it is due has had a success by then."`
	Rows        ExpectRows `json:"rows,omitempty" definition:"scalar,nonempty" doc:"The least rows of a fetch, events of a run of a producer, or rows that a slot tells of as rows in its output; or usual: not far fewer than usual."`
	OnTime      *float64   `json:"onTime,omitempty" example:"99.5" doc:"How many of 100 starts are within a minute of their time."`
}

// Empty reports whether nothing is expected.
func (e *Expect) Empty() bool { return e == nil || *e == Expect{} }

// ExpectRows is how many rows are expected: a number, which it also is in JSON, or
// a word.
type ExpectRows string

// RowsUsual is as many rows as usual.
const RowsUsual ExpectRows = "usual"

// MarshalJSON writes a number or a text.
func (r ExpectRows) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(r), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(r) {
		return []byte(r), nil
	}
	return json.Marshal(string(r))
}

// UnmarshalJSON reads a number or a text.
func (r *ExpectRows) UnmarshalJSON(raw []byte) error {
	var n json.Number
	if len(raw) > 0 && raw[0] != '"' && json.Unmarshal(raw, &n) == nil {
		*r = ExpectRows(n)
		return nil
	}
	return json.Unmarshal(raw, (*string)(r))
}

// Expectation is something that is expected of a lane, and whether it is met.
type Expectation struct {
	Name     string  `json:"name" enum:"freshWithin,doneBy,rows,onTime"`
	Met      bool    `json:"met"`
	Since    Instant `json:"since" nullable:"true" doc:"Since when it is not met; null while it is."`
	Sentence string  `json:"sentence" example:"It last succeeded at 2030-01-31T09:00:00.000Z; a success is expected every 2h."`
}
