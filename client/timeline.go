package client

// Timeline is what ran and what will run, in the order of time.
type Timeline struct {
	Page[TimelineItem]
	Now     Instant `json:"now" doc:"The past ends here, and the future begins."`
	Partial bool    `json:"partial" doc:"There are more lanes than were included for the future."`
}

// TimelineItem is a run of the past, or something that comes due.
type TimelineItem struct {
	At      Instant     `json:"at" doc:"When the run began, or when it comes due."`
	What    string      `json:"what" enum:"run,slot"`
	Kind    string      `json:"kind" enum:"workflow,source,schedule"`
	Lane    string      `json:"lane" example:"mail-to-sheet" doc:"The name of what runs."`
	LaneID  NullString  `json:"laneId" doc:"Of a schedule: its id; else null."`
	Handler NullString  `json:"handler" doc:"Of a workflow: the part of it that runs; else null."`
	Run     *RunSummary `json:"run" doc:"Null for what comes due."`
}
