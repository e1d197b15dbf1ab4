package client

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Cron is one cron expression, or several with semicolons between them. In JSON
// it is a text, or a list of texts if they are several.
type Cron string

// Crons are several expressions.
func Crons(list ...string) Cron { return Cron(strings.Join(list, "; ")) }

// List are the expressions one by one; nil if there is none.
func (c Cron) List() []string {
	if c == "" {
		return nil
	}
	list := strings.Split(string(c), ";")
	for i, one := range list {
		list[i] = strings.TrimSpace(one)
	}
	return list
}

// MarshalJSON writes a text or a list.
func (c Cron) MarshalJSON() ([]byte, error) {
	if list := c.List(); len(list) > 1 {
		return json.Marshal(list)
	}
	return json.Marshal(string(c))
}

// UnmarshalJSON reads a text or a list.
func (c *Cron) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return json.Unmarshal(raw, (*string)(c))
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*c = Crons(list...)
	return nil
}

// Timing is when a schedule runs besides its cron expressions.
type Timing struct {
	Interval string   `json:"interval,omitempty" example:"90m" doc:"Instead of cron: the time between two slots."`
	At       string   `json:"at,omitempty" example:"2026-12-24T18:00:00+01:00" doc:"Instead of cron: the one instant at which it runs."`
	From     string   `json:"from,omitempty" example:"2026-12-01" doc:"A date or an instant, in the zone: nothing runs before it."`
	Until    string   `json:"until,omitempty" example:"2027-06-30" doc:"A date or an instant, in the zone: the last on which it runs."`
	Except   []string `json:"except,omitempty" doc:"What is left out: dates, ranges of dates such as 2026-12-24/2027-01-01, cron expressions, and calendar:NAME."`
	MaxRuns  int64    `json:"maxRuns,omitempty" minimum:"0" doc:"After how many slots it ends. Runs that people ask for and backfills do not count."`
	Jitter   string   `json:"jitter,omitempty" example:"5m" doc:"Each slot starts later than its time by less than this, always by the same."`
}

// TimingPatch changes what is given and keeps the rest; what is empty is removed.
type TimingPatch struct {
	Interval *string   `json:"interval,omitempty" doc:"Takes the place of cron and at."`
	At       *string   `json:"at,omitempty" doc:"Takes the place of cron and interval."`
	From     *string   `json:"from,omitempty"`
	Until    *string   `json:"until,omitempty"`
	Except   *[]string `json:"except,omitempty"`
	MaxRuns  *int64    `json:"maxRuns,omitempty" minimum:"0"`
	Jitter   *string   `json:"jitter,omitempty"`
}
