package contract

// BillingAccountV1 is who pays, with what was spent lately.
type BillingAccountV1 struct {
	ID          string    `json:"id"`
	OwnerUserID string    `json:"ownerUserId"`
	Name        string    `json:"name"`
	BalanceUSD  *Micro    `json:"balanceUsd" nullable:"true" doc:"What is left; below zero is owed. Null: not prepaid."`
	KeyRef      *string   `json:"keyRef" example:"${TEAM_KEY}" doc:"Names the key that graphs get to know the caller by: an environment variable of the server that runs them. Never the key. Null: it has none."`
	ReservedUSD Micro     `json:"reservedUsd" doc:"What open runs may still cost."`
	Days        []SpendV1 `json:"days" nullable:"false" doc:"What was spent by UTC day, the newest first; days without receipts are left out."`
	CreatedAt   Instant   `json:"createdAt"`
}

// BillingAccountsUpdateV1Input changes what is given and keeps the rest.
type BillingAccountsUpdateV1Input struct {
	KeyRef     Given[string] `json:"keyRef,omitzero" nullable:"true" example:"${TEAM_KEY}" doc:"The key that graphs get to know the caller by, as a reference to an environment variable of the server that runs them. Null: none."`
	BalanceUSD Given[Micro]  `json:"balanceUsd,omitzero" nullable:"true" minimum:"0" maximum:"1000000000" example:"10" doc:"What is left from now on; runs that may cost more do not start. Null: not prepaid."`
}

// SpendV1 is what was spent on one UTC day.
type SpendV1 struct {
	Day       string `json:"day" example:"2030-01-31" doc:"UTC."`
	AmountUSD Micro  `json:"amountUsd"`
	Receipts  int64  `json:"receipts"`
}

// ReceiptV1 is the charge for one unit of usage.
type ReceiptV1 struct {
	ID               string  `json:"id"`
	BillingAccountID string  `json:"billingAccountId"`
	GrantID          *string `json:"grantId"`
	ScheduleID       *string `json:"scheduleId"`
	RunID            string  `json:"runId" doc:"Of the first attempt of the slot."`
	Attempt          int     `json:"attempt"`
	SourceSystem     string  `json:"sourceSystem" doc:"Who counted the usage."`
	SourceReference  string  `json:"sourceReference" doc:"runId/attempt/unit; unique within the source system."`
	Executor         string  `json:"executor" example:"langgraph"`
	Model            *string `json:"model"`
	InputTokens      int64   `json:"inputTokens"`
	OutputTokens     int64   `json:"outputTokens"`
	AmountUSD        Micro   `json:"amountUsd"`
	CreatedAt        Instant `json:"createdAt"`
}
