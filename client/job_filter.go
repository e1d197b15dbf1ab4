package client

// JobFilterRequest picks jobs that wait, run or failed; what is absent picks all.
// Jobs internal to Pawl are never picked.
type JobFilterRequest struct {
	Task      string `json:"task,omitempty" minLength:"1" maxLength:"256" example:"send-email" doc:"Of this task."`
	Lane      string `json:"lane,omitempty" minLength:"1" maxLength:"256" example:"customer-17" doc:"Of this lane."`
	Key       string `json:"key,omitempty" minLength:"1" maxLength:"256" example:"invoice-4711" doc:"With this key."`
	State     string `json:"state,omitempty" enum:"scheduled,pending,running,failed" doc:"In this state. Only failed ones can be retried."`
	Error     string `json:"error,omitempty" minLength:"1" maxLength:"256" example:"connection refused" doc:"Whose last error contains this text, in this case."`
	OlderThan string `json:"olderThan,omitempty" minLength:"1" maxLength:"64" example:"2h" doc:"Made longer ago than this, such as 90s, 5m, 1h30m or 7d."`
}

// JobsChangeRequest asks for something to be done to the jobs that a filter picks.
type JobsChangeRequest struct {
	Filter JobFilterRequest `json:"filter" doc:"Which jobs; it must name something."`
	Limit  int              `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"How many at most. Absent is 1000."`
	Cursor string           `json:"cursor,omitempty" minLength:"1" maxLength:"200" doc:"The nextCursor of the answer before; absent is the beginning."`
	DryRun bool             `json:"dryRun,omitempty" doc:"Only count them, and change nothing."`
}

// ChangedJobs tells what was done to the jobs that a filter picks.
type ChangedJobs struct {
	Matched    int        `json:"matched" doc:"How many the filter picked this time."`
	Changed    int        `json:"changed" doc:"How many were changed: fewer than matched if some ended or were replaced meanwhile, and none in a dry run."`
	DryRun     bool       `json:"dryRun"`
	More       bool       `json:"more" doc:"There may be more: go on with nextCursor. One request looks at some ten thousand jobs, the oldest first, so that there can be more even if it matched none."`
	NextCursor NullString `json:"nextCursor" doc:"Where to go on; null at the end."`
}
