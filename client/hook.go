package client

import "encoding/json"

// Hook is an address to which others deliver.
type Hook struct {
	Name         string          `json:"name" example:"github"`
	Description  NullString      `json:"description"`
	Path         string          `json:"path" example:"/hooks/github" doc:"Where deliveries are posted, at the address for hooks."`
	Scheme       string          `json:"scheme" enum:"standard,github,stripe,slack,hmac,token" doc:"How deliveries are signed."`
	Effect       string          `json:"effect" example:"publishes issue.opened to the workflow triage" doc:"What a delivery becomes."`
	Issue        NullString      `json:"issue" doc:"Why this server takes no deliveries for it; null if it does."`
	LastDelivery *Delivery       `json:"lastDelivery" doc:"The newest; null if there is none."`
	Definition   json.RawMessage `json:"definition" doc:"In force, with all defaults filled in. Secrets are references; those that are with a file are left out."`
	Version      string          `json:"version" doc:"A hash of the definition."`
	OwnerUserID  string          `json:"ownerUserId" doc:"The user in whose name it acts: who last changed it."`
	UpdatedBy    string          `json:"updatedBy"`
	CreatedAt    Instant         `json:"createdAt"`
	UpdatedAt    Instant         `json:"updatedAt"`
}

// Delivery is something that was sent to a hook.
type Delivery struct {
	ID         string            `json:"id" example:"355813294120960001" doc:"A number, as text."`
	Hook       string            `json:"hook" example:"github"`
	DeliveryID NullString        `json:"deliveryId" example:"72d3162e-cc78-11e3-81ab-4c9367dc0958" doc:"The sender's id; null if it was refused."`
	ReceivedAt Instant           `json:"receivedAt"`
	Outcome    string            `json:"outcome" enum:"delivered,pending,filtered,failed,refused" doc:"delivered: it had its effect. pending: the effect was refused and is tried again. filtered: the hook is not for it. failed: the effect was refused for good. refused: it was not believed, or could not be read."`
	Reason     NullString        `json:"reason" example:"header:X-GitHub-Event is push, not issues" doc:"Why it is not delivered."`
	Effect     NullString        `json:"effect" example:"published issue.opened to triage" doc:"What it became."`
	Attempts   int               `json:"attempts" doc:"How often the effect was tried."`
	Effects    int               `json:"effects" doc:"How often it took place: more than once only if it was delivered again."`
	Headers    map[string]string `json:"headers" nullable:"false" doc:"Those that are kept; never signatures, cookies or credentials."`
	Bytes      int64             `json:"bytes" doc:"Of the body as it came."`
	Body       json.RawMessage   `json:"body,omitempty" doc:"Of one delivery only."`
	UpdatedAt  Instant           `json:"updatedAt"`
}

// AppliedHook is what applying a definition did.
type AppliedHook struct {
	Name       string          `json:"name" example:"github"`
	What       string          `json:"what" enum:"created,updated,unchanged"`
	DryRun     bool            `json:"dryRun" doc:"Nothing was changed; what shows what would be."`
	Version    string          `json:"version" doc:"A hash of the definition."`
	Definition json.RawMessage `json:"definition" doc:"With all defaults filled in."`
	Previous   json.RawMessage `json:"previous" doc:"The previous definition; null for a new hook."`
}

// Received is what the sender of a delivery is told.
type Received struct {
	ID         string `json:"id,omitempty" doc:"Of the delivery, if it is new."`
	DeliveryID string `json:"deliveryId"`
	Outcome    string `json:"outcome,omitempty" enum:"delivered,pending,filtered" doc:"If it is new."`
	Known      bool   `json:"known" doc:"It was delivered before, and changed nothing."`
}
