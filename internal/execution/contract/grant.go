package contract

// GrantV1 is the right to run graphs in the name of a user.
type GrantV1 struct {
	ID                string   `json:"id"`
	UserID            string   `json:"userId"`
	BillingAccountID  string   `json:"billingAccountId"`
	Scopes            []string `json:"scopes" nullable:"false"`
	Caps              CapsV1   `json:"caps"`
	WildcardConsentAt *Instant `json:"wildcardConsentAt" nullable:"true" doc:"When its owner agreed that every graph may run; null if not."`
	Automatic         bool     `json:"automatic" doc:"Made for one schedule, and revoked with it."`
	ExpiresAt         *Instant `json:"expiresAt" nullable:"true" doc:"Null: never."`
	RevokedAt         *Instant `json:"revokedAt" nullable:"true"`
	CreatedAt         Instant  `json:"createdAt"`
}

// CapsV1 bound what runs under a grant may cost. Null is no bound; days are UTC.
type CapsV1 struct {
	USDPerDay  *Micro `json:"usdPerDay" nullable:"true" required:"false"`
	USDPerRun  *Micro `json:"usdPerRun" nullable:"true" required:"false"`
	RunsPerDay *int64 `json:"runsPerDay" nullable:"true" required:"false"`
}

// CapsV1Input is CapsV1 in a request, which has no other fields.
type CapsV1Input CapsV1

// GrantsCreateV1Input asks for a grant. What may run is told by scopes or by
// graphs, or by both.
type GrantsCreateV1Input struct {
	Scopes           []string    `json:"scopes,omitempty" nullable:"false" maxItems:"100"`
	Graphs           []string    `json:"graphs,omitempty" nullable:"false" maxItems:"100" example:"[\"langgraph:poet\"]" doc:"The graphs that may run; * is every graph, of now and later, and needs wildcardConsent."`
	BillingAccountID string      `json:"billingAccountId,omitempty" doc:"Absent: your default account."`
	Caps             CapsV1Input `json:"caps,omitzero"`
	ExpiresAt        *Instant    `json:"expiresAt,omitempty" doc:"Absent: never."`
	WildcardConsent  bool        `json:"wildcardConsent,omitempty" doc:"You agree that every graph, of now and later, may run in your name."`
}
