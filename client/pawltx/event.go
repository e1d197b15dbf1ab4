package pawltx

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Event is an event to be published.
type Event struct {
	Workflow  string
	Topic     string
	MessageID string // known to the topic already: nothing is published
	Payload   any    // whatever becomes JSON
	Input     *Input // what it comes from; nil is nothing in particular
}

// Input is something outside that an event comes from.
type Input struct {
	Source string `json:"source"`
	Type   string `json:"type"`
	ID     string `json:"id"`
	Title  string `json:"title,omitempty"`
}

// Publish adds an event to a topic of a workflow, and reports whether it is new. It
// locks the topic until the transaction ends: call it late.
func (t Tx) Publish(ctx context.Context, e Event) (added bool, err error) {
	payload, err := marshal(e.Payload, "null")
	if err != nil {
		return false, fmt.Errorf("publish: %w", err)
	}
	var input *string
	if e.Input != nil {
		text, err := marshal(e.Input, "null")
		if err != nil {
			return false, fmt.Errorf("publish: %w", err)
		}
		input = &text
	}
	err = t.row(ctx, `select pawl.publish($1::text, $2::text, $3::text, $4::text::jsonb, $5::text::jsonb)`, e.Workflow, e.Topic, e.MessageID, payload, input).Scan(&added)
	if err != nil {
		return false, fmt.Errorf("publish: %w", err)
	}
	return added, nil
}

// State is how a job stands.
type State struct {
	ID         string          `json:"id"`
	Task       string          `json:"task"`
	State      string          `json:"state"` // scheduled, pending, running, failed, succeeded or cancelled
	Attempts   int             `json:"attempts"`
	Result     json.RawMessage `json:"result"` // what its worker answered, while it is kept
	Error      string          `json:"error"`
	FinishedAt time.Time       `json:"finished_at"` // zero unless it ended
}

// JobState reads how a job stands, as the transaction sees it, or fails with
// pawl.ErrNotFound if the application has none with this id.
func (t Tx) JobState(ctx context.Context, id string) (s State, err error) {
	var text *string
	err = t.row(ctx, `select (select row_to_json(s)::text from pawl.job_state s where s.id = $1::text::uuid)`, id).Scan(&text)
	switch {
	case err != nil:
		return s, fmt.Errorf("read job: %w", err)
	case text == nil:
		return s, &pawl.Error{Code: pawl.CodeNotFound, Op: "read job", Msg: "there is no job " + id, Hint: "Jobs that ended are forgotten after a while."}
	}
	if err := json.Unmarshal([]byte(*text), &s); err != nil {
		return s, fmt.Errorf("read job: %w", err)
	}
	if string(s.Result) == "null" {
		s.Result = nil
	}
	return s, nil
}
