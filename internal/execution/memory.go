package execution

import (
	"encoding/json"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// memory is what the service remembers about a key besides its columns: it is
// the JSON of the column remote.
type memory struct {
	Remote       json.RawMessage `json:"remote,omitempty"` // the executor's own
	ScheduleID   string          `json:"scheduleId,omitempty"`
	ScheduledFor client.Instant  `json:"scheduledFor,omitzero"`

	// Units is how many units of usage came before the last interrupt of the
	// attempt, so that those without a name go on counting.
	Units int `json:"units,omitempty"`

	// Question is the last one that the run asked a person. Its answer may be
	// under way.
	Question string `json:"question,omitempty"`

	// Asked says that the attempt once asked a person, so that a resumption that
	// died can be begun again.
	Asked bool `json:"asked,omitempty"`

	// Input is that of the run while it waits for a person: who goes on with the
	// answer is told both.
	Input json.RawMessage `json:"input,omitempty"`

	// What the executor said about its failure.
	Unknown      bool  `json:"unknown,omitempty"`
	Retry        bool  `json:"retry,omitempty"`
	RetryAfterMS int64 `json:"retryAfterMs,omitempty"`
}

func (m memory) json() json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil { // what an executor asked to remember is not JSON
		m.Remote, _ = json.Marshal(string(m.Remote))
		raw, _ = json.Marshal(m)
	}
	return raw
}

func memoryOf(e executionstore.Execution) (m memory, err error) {
	if e.Remote == nil {
		return m, nil
	}
	if err := json.Unmarshal(e.Remote, &m); err != nil {
		return m, fmt.Errorf("read what is remembered of run %s: %w", e.RunID, err)
	}
	return m, nil
}

// answerOf tells what is stored under a key: an outcome, or a question to a
// person.
func answerOf(e executionstore.Execution) (contract.RunAnswerV1, error) {
	m, err := memoryOf(e)
	if err != nil {
		return contract.RunAnswerV1{}, err
	}
	cost := pawl.USD(e.Cost)
	answer := contract.RunAnswerV1{
		OK: e.Outcome.OK, RunID: e.RunID, TraceID: e.Outcome.TraceID,
		ErrorCode: contract.ErrorCode(e.Outcome.ErrorCode), ErrorMessage: e.Outcome.ErrorMessage,
		Output: e.Outcome.Output, CostUSD: &cost, Interrupt: e.Interrupt,
		Attempt: e.Attempt, Unknown: m.Unknown, Retry: m.Retry, RetryAfterMS: m.RetryAfterMS,
	}
	if e.Interrupt != nil {
		answer.QuestionID = m.Question
	}
	return answer, nil
}
