package client

// Lane is something that runs by itself, as people see it. It speaks of inputs
// and effects; phases, handlers and topics are not their business.
type Lane struct {
	Kind         string            `json:"kind" enum:"workflow,source,schedule"`
	Name         string            `json:"name" example:"mail-to-sheet"`
	ID           string            `json:"id" format:"uuid"`
	Status       string            `json:"status" enum:"Running,Idle,Needs attention,Stopped,Halted"`
	Issue        NullString        `json:"issue" doc:"What is wrong, in a sentence; null if nothing is." example:"It is paused; resume it to continue."`
	IssueCode    NullString        `json:"issueCode" doc:"The same for programs, such as paused, backing_off or sign_in."`
	Schedule     string            `json:"schedule" example:"Every 5 minutes" doc:"A description of its schedule."`
	NextAt       Instant           `json:"nextAt" nullable:"true" doc:"When it runs next; null if nothing is scheduled, or it waits for events."`
	NextText     NullString        `json:"nextText" example:"Next in 3 min" doc:"The same as a countdown."`
	LastActivity Activity          `json:"lastActivity"`
	Pending      int               `json:"pending" doc:"How much waits to be worked on."`
	PendingMore  bool              `json:"pendingMore,omitempty" doc:"There may be more: so many events wait that only the inputs of the first were counted."`
	Paused       bool              `json:"paused" doc:"A person paused it."`
	Pause        *Pause            `json:"pause,omitempty" doc:"What was said about that; absent: it is not paused, or nobody knows."`
	Labels       map[string]string `json:"labels" nullable:"false"`
	Expectations []Expectation     `json:"expectations,omitempty" doc:"What its definition expects of it, and whether it is met; absent: nothing."`
}

// Activity is what a lane did last.
type Activity struct {
	At   Instant `json:"at"`
	Text string  `json:"text" example:"Found Mail from Ada: Hello" doc:"In terms of inputs and effects."`
}

// LaneWhy is why a lane runs, does not run, or waits.
type LaneWhy struct {
	Lane
	At     Instant      `json:"at" doc:"The time that this describes."`
	Next   string       `json:"next" example:"It checks again at 2030-01-31T09:00:00.000Z." doc:"What it does next."`
	Do     NullString   `json:"do" example:"pawl approve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The command that resolves its status; null while it is idle."`
	Gates  []Gate       `json:"gates" nullable:"false" doc:"The conditions of running; it runs when all are open."`
	Recent []RunSummary `json:"recent" nullable:"false" doc:"Its last runs, the newest first."`
	Around *Around      `json:"around" doc:"What was at the instant that was asked for; null if none was."`

	Slot *Slot `json:"slot" doc:"Of a schedule: the slot of that instant, or the one before it; else null."`
}

// Gate is one condition of running.
type Gate struct {
	Name  string  `json:"name" example:"wanted"`
	Open  bool    `json:"open"`
	Text  string  `json:"text" example:"It is enabled."`
	Until Instant `json:"until" nullable:"true" doc:"When it opens; null if unknown, or open."`
}

// Around are the runs around an instant.
type Around struct {
	At     Instant     `json:"at"`
	Text   string      `json:"text" doc:"What was then, in a sentence."`
	Before *RunSummary `json:"before" doc:"The newest run that began then or before."`
	After  *RunSummary `json:"after" doc:"The first run that began after."`
	Run    *RunSummary `json:"run" doc:"Of workflows and sources: the run that stood for this time, its last attempt. Null if none did; the slots of schedules tell it of them."`
}
