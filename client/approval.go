package client

import "encoding/json"

// Approval is a question to people: may this call be made?
type Approval struct {
	ID        string          `json:"id" format:"uuid"`
	Workflow  string          `json:"workflow" example:"mail-to-sheet"`
	RunID     string          `json:"runId" format:"uuid" doc:"The run that asks; it is approved and rejected there."`
	Tool      string          `json:"tool" example:"sheet"`
	Method    string          `json:"method" example:"append"`
	Arguments json.RawMessage `json:"arguments" doc:"What will be sent."`
	Address   NullString      `json:"address" example:"POST https://shop.example.com/orders" doc:"Where the call goes, with secrets left out; null if the connection cannot tell."`
	Hash      string          `json:"hash" doc:"Names this call: the script, the method, the address and the arguments. Send it along to approve what you saw and nothing else."`
	Title     NullString      `json:"title" example:"Add a row for Ada" doc:"What the script calls it; not to be trusted."`
	State     string          `json:"state" enum:"pending,approved,rejected,expired,used" doc:"approved: and not made yet. used: the call was made."`
	CreatedAt Instant         `json:"createdAt"`
	ExpiresAt Instant         `json:"expiresAt" doc:"Until when it can be answered."`
	DecidedAt Instant         `json:"decidedAt" nullable:"true"`
	DecidedBy NullString      `json:"decidedBy" doc:"The user who answered."`
}

// ApprovalRule is the approval of all calls of a method by a workflow.
type ApprovalRule struct {
	Workflow  string     `json:"workflow" example:"mail-to-sheet"`
	Tool      string     `json:"tool" example:"sheet"`
	Method    string     `json:"method" example:"append"`
	CreatedAt Instant    `json:"createdAt"`
	CreatedBy NullString `json:"createdBy" doc:"The user who said always."`
}

// The states of an approval.
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved" // and not made yet
	ApprovalRejected = "rejected"
	ApprovalExpired  = "expired"
	ApprovalUsed     = "used" // the call was made
)
