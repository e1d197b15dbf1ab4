package client

import pawl "github.com/pawlrun/pawl"

// Grant is the right to run graphs in the name of a user.
type Grant struct {
	ID                string   `json:"id"`
	UserID            string   `json:"userId"`
	BillingAccountID  string   `json:"billingAccountId"`
	Scopes            []string `json:"scopes" nullable:"false"`
	Caps              Caps     `json:"caps"`
	WildcardConsentAt Instant  `json:"wildcardConsentAt" nullable:"true" doc:"When its owner agreed that every graph may run; null if not."`
	Automatic         bool     `json:"automatic" doc:"Made for one schedule, and revoked with it."`
	ExpiresAt         Instant  `json:"expiresAt" nullable:"true" doc:"Null: never."`
	RevokedAt         Instant  `json:"revokedAt" nullable:"true"`
	CreatedAt         Instant  `json:"createdAt"`
}

// Caps bound what runs under a grant may cost. Null is no bound; days are UTC.
type Caps struct {
	USDPerDay  *pawl.USD `json:"usdPerDay" nullable:"true" required:"false"`
	USDPerRun  *pawl.USD `json:"usdPerRun" nullable:"true" required:"false"`
	RunsPerDay *int64    `json:"runsPerDay" nullable:"true" required:"false"`
}

// CapsRequest is CapsV1 in a request, which has no other fields.
type CapsRequest struct {
	USDPerDay  *pawl.USD `json:"usdPerDay,omitempty" nullable:"true"`
	USDPerRun  *pawl.USD `json:"usdPerRun,omitempty" nullable:"true"`
	RunsPerDay *int64    `json:"runsPerDay,omitempty" nullable:"true"`
}

// GrantRequest asks for a grant. What may run is told by scopes or by
// graphs, or by both.
type GrantRequest struct {
	Scopes           []string    `json:"scopes,omitempty" nullable:"false" maxItems:"100"`
	Graphs           []string    `json:"graphs,omitempty" nullable:"false" maxItems:"100" example:"[\"langgraph:poet\"]" doc:"The graphs that may run; * is every graph, of now and later, and needs wildcardConsent."`
	BillingAccountID string      `json:"billingAccountId,omitempty" doc:"Absent: your default account."`
	Caps             CapsRequest `json:"caps,omitzero"`
	ExpiresAt        Instant     `json:"expiresAt,omitzero" doc:"Absent: never."`
	WildcardConsent  bool        `json:"wildcardConsent,omitempty" doc:"You agree that every graph, of now and later, may run in your name."`
}
