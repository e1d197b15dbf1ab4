package client

import pawl "github.com/pawlrun/pawl"

// Account is who pays, with what was spent lately.
type Account struct {
	ID          string     `json:"id"`
	OwnerUserID string     `json:"ownerUserId"`
	Name        string     `json:"name"`
	BalanceUSD  *pawl.USD  `json:"balanceUsd" nullable:"true" doc:"What is left; below zero is owed. Null: not prepaid."`
	KeyRef      NullString `json:"keyRef" example:"${TEAM_KEY}" doc:"Names the key that graphs get to know the caller by: an environment variable of the server that runs them. Never the key. Null: it has none."`
	Timezone    string     `json:"timezone" example:"Europe/Berlin" doc:"Whose days the caps of grants count."`
	ReservedUSD pawl.USD   `json:"reservedUsd" doc:"What open runs may still cost."`
	Days        []DaySpend `json:"days" nullable:"false" doc:"What was spent by UTC day, the newest first; days without receipts are left out."`
	CreatedAt   Instant    `json:"createdAt"`
}

// AccountPatch changes what is given and keeps the rest.
type AccountPatch struct {
	KeyRef     Optional[string]   `json:"keyRef,omitzero" nullable:"true" example:"${TEAM_KEY}" doc:"The key that graphs get to know the caller by, as a reference to an environment variable of the server that runs them. Null: none."`
	Timezone   *string            `json:"timezone,omitempty" example:"Europe/Berlin" doc:"The name of an IANA zone, whose days the caps of grants count from now on."`
	BalanceUSD Optional[pawl.USD] `json:"balanceUsd,omitzero" nullable:"true" minimum:"0" maximum:"1000000000" example:"10" doc:"What is left from now on; runs that may cost more do not start. Null: not prepaid."`
}

// DaySpend is what was spent on one UTC day.
type DaySpend struct {
	Day       string   `json:"day" example:"2030-01-31" doc:"UTC."`
	AmountUSD pawl.USD `json:"amountUsd"`
	Receipts  int64    `json:"receipts"`
}

// Receipt is the charge for one unit of usage.
type Receipt struct {
	ID               string     `json:"id"`
	BillingAccountID string     `json:"billingAccountId"`
	GrantID          NullString `json:"grantId"`
	ScheduleID       NullString `json:"scheduleId"`
	RunID            string     `json:"runId" doc:"Of the first attempt of the slot."`
	Attempt          int        `json:"attempt"`
	SourceSystem     string     `json:"sourceSystem" doc:"Who counted the usage."`
	SourceReference  string     `json:"sourceReference" doc:"runId/attempt/unit; unique within the source system."`
	Executor         string     `json:"executor" example:"langgraph"`
	Model            NullString `json:"model"`
	InputTokens      int64      `json:"inputTokens"`
	OutputTokens     int64      `json:"outputTokens"`
	AmountUSD        pawl.USD   `json:"amountUsd"`
	CostSource       string     `json:"costSource" enum:"executor,prices,unknown" doc:"Who told the amount: the executor, or the prices of models. Unknown: the model has no price, and the amount is 0."`
	Price            NullString `json:"price" example:"1.25 in, 10 out per 1M tokens" doc:"The price in USD that the amount was reckoned by; null unless costSource is prices."`
	CreatedAt        Instant    `json:"createdAt"`
}
