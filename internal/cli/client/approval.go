package client

import (
	"encoding/json"
	"time"
)

// Where approvals and connections are.
const (
	ApprovalsPath   = "/api/v1/approvals"
	QuestionsPath   = "/api/v1/questions"
	ConnectionsPath = "/api/v1/connections"
)

// Approval is a question to people: may this call be made?
type Approval struct {
	ID        string          `json:"id"`
	Workflow  string          `json:"workflow"`
	RunID     string          `json:"runId"`
	Tool      string          `json:"tool"`
	Method    string          `json:"method"`
	Arguments json.RawMessage `json:"arguments"` // what will be sent
	Hash      string          `json:"hash"`      // names this call and no other
	Title     string          `json:"title"`     // what the script calls it
	State     string          `json:"state"`
	CreatedAt time.Time       `json:"createdAt"`
	ExpiresAt time.Time       `json:"expiresAt"`
	DecidedAt time.Time       `json:"decidedAt"`
	DecidedBy string          `json:"decidedBy"`
}

// AskedQuestion is what a graph asks a person, as the list of all has it.
type AskedQuestion struct {
	RunID    string          `json:"runId"`
	Schedule string          `json:"schedule"`
	Question json.RawMessage `json:"question"`
	AskedAt  time.Time       `json:"askedAt"`
}

// The states of an approval.
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved" // and not made yet
	ApprovalRejected = "rejected"
	ApprovalExpired  = "expired"
	ApprovalUsed     = "used" // the call was made
)

// Action is something that can be done about a run.
type Action struct {
	Name     string   `json:"name"`
	Outcomes []string `json:"outcomes"` // of resolve
}

// Connection is something that scripts may touch.
type Connection struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	File    string `json:"file"` // of its definition, without the folder
	Methods []struct {
		Name       string `json:"name"`
		Class      string `json:"class"`  // read or mutation
		Policy     string `json:"policy"` // allow, ask or deny
		Reconciles bool   `json:"reconciles"`
	} `json:"methods"`
	Blocked []struct { // until somebody pins them
		Name string `json:"name"`
		Why  string `json:"why"`
	} `json:"blocked"`
}

// Pin is a method of a connection, compared to what was agreed to.
type Pin struct {
	Method string `json:"method"`
	Class  string `json:"class"` // read or mutation
	State  string `json:"state"`
	Now    string `json:"now"`    // hash; empty if it is gone
	Change string `json:"change"` // in words
	Was    string `json:"was"`    // what was agreed to, in lines
	Is     string `json:"is"`
	Fixed  bool   `json:"fixed"` // in the definition
}

// The states of a pin.
const (
	PinHolds   = "pinned"
	PinChanged = "changed"
	PinMissing = "new"
	PinGone    = "gone"
)

// Pinned is the answer to the agreement to methods.
type Pinned struct {
	Pinned  []string `json:"pinned"`
	Blocked []string `json:"blocked"` // still
}

// Rule is the approval of all calls of a method by a workflow.
type Rule struct {
	Workflow  string    `json:"workflow"`
	Tool      string    `json:"tool"`
	Method    string    `json:"method"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
}

// Trial is how it went to try a connection out.
type Trial struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}
