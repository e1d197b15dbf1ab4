package client

// JobEvent is the data of an event of kind job.
type JobEvent struct {
	What  string     `json:"what"`
	Job   Job        `json:"job"`
	At    Instant    `json:"at"`
	Error NullString `json:"error"`
}

// RunEvent is the data of an event of kind run.
type RunEvent struct {
	What  string     `json:"what"`
	Run   RunSummary `json:"run"`
	At    Instant    `json:"at"`
	Alarm string     `json:"alarm,omitempty"`
}

// WorkflowEvent is the data of an event of kind workflow.
type WorkflowEvent struct {
	What     string  `json:"what"`
	Workflow string  `json:"workflow"`
	At       Instant `json:"at"`
	Topic    string  `json:"topic,omitempty"`
	Event    string  `json:"event,omitempty"`
	Input    string  `json:"input,omitempty"`
}

// ScheduleEvent is the data of an event of kind schedule.
type ScheduleEvent struct {
	What     string  `json:"what"`
	Schedule string  `json:"schedule"`
	Name     string  `json:"name,omitempty"`
	Slot     Instant `json:"slot,omitzero"`
	Status   string  `json:"status,omitempty"`
	At       Instant `json:"at"`

	// Disposition is that of a slot that is closed.
	Disposition string `json:"disposition,omitempty"`
}

// SourceEvent is the data of an event of kind source.
type SourceEvent struct {
	What     string          `json:"what"`
	Source   string          `json:"source"`
	At       Instant         `json:"at"`
	Run      string          `json:"run,omitempty"`
	Progress *SourceProgress `json:"progress,omitempty"`
}
