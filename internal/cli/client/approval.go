package client

import (
	"encoding/json"
	"time"
)

// Where approvals and connections are.
const (
	ApprovalsPath   = "/api/v1/approvals"
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
}

// Trial is how it went to try a connection out.
type Trial struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}
