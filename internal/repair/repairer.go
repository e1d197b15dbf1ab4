package repair

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// MaxScript is how long a proposed script may be, in bytes.
const MaxScript = 512 << 10

// Evidence is what a repairer gets. Commands read it as JSON; for models it
// becomes the prompt. Whoever collects it takes the secrets out.
type Evidence struct {
	Workflow string `json:"workflow"`
	Filename string `json:"filename"`
	Script   string `json:"script"`
	Handler  string `json:"handler"` // such as consumers.addRow
	Phase    string `json:"phase"`
	Error    string `json:"error"`           // with file:line:column when the place is known
	Reads    []Read `json:"reads,omitempty"` // of the failing run, the oldest first

	// What the failing phase was given; absent when it gets no such thing.
	State          json.RawMessage `json:"state,omitempty"`
	Prepared       json.RawMessage `json:"prepared,omitempty"`
	MutationResult json.RawMessage `json:"mutationResult,omitempty"`

	Attempts []Attempt `json:"attempts,omitempty"` // the oldest first
	Types    string    `json:"types"`              // pawl.d.ts
}

// Read is one recorded call of the failing run.
type Read struct {
	Op     string          `json:"op"` // such as tool or peek
	Call   json.RawMessage `json:"call,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Attempt is an earlier proposal for the same failure, and why it was no good.
type Attempt struct {
	Script string `json:"script"` // whole, or as a difference
	Error  string `json:"error"`
}

// Proposal is a script that may be right. It is not checked beyond its form.
type Proposal struct {
	Script      string
	Explanation string // for people; may be empty
	CostNote    string // such as "1200 tokens in, 340 out"; may be empty
}

// Repairer proposes a corrected script. Every error is an *Error. It is safe
// for concurrent use.
type Repairer interface {
	// Name is for people, such as "openai small-model".
	Name() string
	Propose(ctx context.Context, e Evidence) (Proposal, error)
}

// checkScript refuses what cannot be a corrected version of the script.
func checkScript(e Evidence, proposed string) error {
	switch {
	case len(proposed) > MaxScript:
		return rejected("the proposed script has more than %d KiB", MaxScript>>10)
	case strings.TrimSpace(proposed) == "":
		return rejected("the proposed script is empty")
	case !utf8.ValidString(proposed) || strings.ContainsRune(proposed, 0):
		return rejected("the proposed script is not text in UTF-8")
	case strings.TrimSpace(proposed) == strings.TrimSpace(e.Script):
		return rejected("the proposed script is the one that failed")
	}
	return nil
}
