package client

// WorkflowSummary is a workflow as the list of all has it.
type WorkflowSummary struct {
	Lane
	Version       string `json:"version" doc:"A hash of the active script."`
	VersionNumber int    `json:"versionNumber" example:"3" doc:"Counts the scripts that were deployed."`
}

// Workflow is everything about one workflow.
type Workflow struct {
	Lane
	Desired       string             `json:"desired" enum:"active,paused,archived" doc:"What a person wants of it."`
	Version       string             `json:"version" doc:"A hash of the active script."`
	VersionNumber int                `json:"versionNumber" example:"3" doc:"Counts the scripts that were deployed."`
	Filename      string             `json:"filename" example:"mail-to-sheet.workflow.ts"`
	Script        string             `json:"script" doc:"The active script."`
	Config        WorkflowConfig     `json:"config" doc:"What the script declares."`
	Producers     []WorkflowProducer `json:"producers" nullable:"false" doc:"When producers run, the next one first."`
	Handlers      []WorkflowHandler  `json:"handlers" nullable:"false" doc:"What handlers keep, in the order of the script."`
	CreatedAt     Instant            `json:"createdAt"`
	DeployedAt    Instant            `json:"deployedAt" doc:"When the script came into force."`

	IssueRunID NullString       `json:"issueRunId" doc:"The run that issue is about; null: none."`
	Partitions *PartitionCounts `json:"partitions,omitempty" doc:"How many of its partitions do what; absent: it has none."`
}

// PartitionCounts are numbers of partitions, each counted up to 1000.
type PartitionCounts struct {
	Working   int `json:"working" doc:"How many are at work."`
	Waiting   int `json:"waiting" doc:"How many wait for a place, because as many are at work as may be."`
	Attention int `json:"attention" doc:"How many need a person."`
	Held      int `json:"held" doc:"How many are held up by something that needs nobody, such as a retry."`
}

// Partition is how a partition of a workflow stands.
type Partition struct {
	ID      string     `json:"id"`
	Name    NullString `json:"name" example:"customer-17" doc:"As the script calls it; null: of events that have none."`
	Handler string     `json:"handler" example:"ship" doc:"The consumer."`
	State   string     `json:"state" enum:"attention,held,working,waiting"`
	Issue   NullString `json:"issue" doc:"What is the matter with it."`
	Since   Instant    `json:"since" doc:"Since when it is in this state."`
	NextAt  Instant    `json:"nextAt" nullable:"true" doc:"When it goes on by itself."`
	RunID   NullString `json:"runId" doc:"Its newest run."`
}

// WorkflowConfig is what a script declares.
type WorkflowConfig struct {
	Topics    []string           `json:"topics" nullable:"false"`
	Keep      map[string]string  `json:"keep,omitempty" doc:"For how long its own things are kept; absent: as the server keeps those of all."`
	Expect    *Expect            `json:"expect,omitempty" doc:"What is expected of it; absent: nothing."`
	Needs     []Need             `json:"needs,omitempty" doc:"The sources that must be fresh before a run begins; absent: none."`
	Producers []DeclaredProducer `json:"producers" nullable:"false"`
	Consumers []DeclaredConsumer `json:"consumers" nullable:"false"`
}

// DeclaredProducer is a producer as the script declares it.
type DeclaredProducer struct {
	Name      string           `json:"name" example:"pollMail"`
	Publishes []string         `json:"publishes" nullable:"false"`
	Schedule  DeclaredSchedule `json:"schedule"`
}

// DeclaredSchedule is an interval, or a cron expression with its zone, and what
// limits it.
type DeclaredSchedule struct {
	Interval string   `json:"interval,omitempty" example:"5m"`
	Cron     string   `json:"cron,omitempty" example:"0 9 * * 1-5"`
	Timezone string   `json:"timezone,omitempty" example:"Europe/Berlin"`
	From     string   `json:"from,omitempty" example:"2026-12-01" doc:"A date or an instant: nothing runs before it."`
	Until    string   `json:"until,omitempty" example:"2027-06-30" doc:"A date or an instant: the last on which it runs."`
	Except   []string `json:"except,omitempty" doc:"What is left out: dates, ranges of dates, cron expressions and calendar:NAME."`
	Jitter   string   `json:"jitter,omitempty" example:"5m" doc:"Each run starts later than its time by less than this, always by the same."`
	Missed   *Missed  `json:"missed,omitempty" doc:"What becomes of times that came due while it could not run; absent: one run stands for all of them."`
}

// DeclaredConsumer is a consumer as the script declares it.
type DeclaredConsumer struct {
	Name      string   `json:"name" example:"addRow"`
	Subscribe []string `json:"subscribe" nullable:"false"`
	Publishes []string `json:"publishes" nullable:"false"`
	HasMutate bool     `json:"hasMutate"`
	HasNext   bool     `json:"hasNext"`

	Partition      string `json:"partition,omitempty" example:"payload.customerId" doc:"The path of the field that says the partition of an event, or function if a function of the script does; absent: it has no partitions."`
	PartitionLimit int    `json:"partitionLimit,omitempty" example:"10" doc:"How many partitions are at work at once; absent: it has no partitions."`
}

// WorkflowProducer is when a producer runs.
type WorkflowProducer struct {
	Name        string  `json:"name" example:"pollMail"`
	Schedule    string  `json:"schedule" example:"Every 5 minutes" doc:"In words."`
	NextRunAt   Instant `json:"nextRunAt" nullable:"true" doc:"Null: the schedule has ended."`
	LastRunAt   Instant `json:"lastRunAt" nullable:"true"`
	RequestedAt Instant `json:"requestedAt" nullable:"true" doc:"When a run was requested that has not started yet."`
}

// WorkflowHandler is what a handler keeps.
type WorkflowHandler struct {
	Name     string  `json:"name" example:"addRow"`
	Type     string  `json:"type" enum:"producer,consumer"`
	HasState bool    `json:"hasState" doc:"It returned a state."`
	WakeAt   Instant `json:"wakeAt" nullable:"true" doc:"When it wants to run without an event."`
}

// RunRequested is the answer to a request for a run.
type RunRequested struct {
	Name      string `json:"name" example:"mail-to-sheet"`
	Requested bool   `json:"requested" doc:"Always true: what is refused is a problem."`
}

// WorkflowVersion is a script as it was deployed.
type WorkflowVersion struct {
	Version   string     `json:"version" doc:"A hash of the script's content."`
	Number    int        `json:"number" example:"3" doc:"Counts the scripts of a workflow."`
	Filename  string     `json:"filename" example:"mail-to-sheet.workflow.ts"`
	CreatedAt Instant    `json:"createdAt" doc:"When it was deployed for the first time."`
	CreatedBy NullString `json:"createdBy" doc:"The user who deployed it."`
	Active    bool       `json:"active" doc:"Whether it is the active one."`
	Script    *string    `json:"script,omitempty" doc:"The source, if it was asked for."`
}

// Repair is a script that was proposed after a script failed.
type Repair struct {
	ID          string     `json:"id"`
	RunID       string     `json:"runId" doc:"The run that failed."`
	State       string     `json:"state" enum:"activated,rejected,failed,proposed" doc:"activated: it came into force. rejected: it was refused. failed: there was none. proposed: it waits for a person; approve or reject the run."`
	Reason      NullString `json:"reason" doc:"Why it was not activated, or not automatically."`
	Explanation NullString `json:"explanation" doc:"What the repairer says about it; not to be trusted."`
	Repairer    string     `json:"repairer"`
	Script      NullString `json:"script" doc:"What was proposed."`
	BaseScript  NullString `json:"baseScript" doc:"The script that failed."`
	CreatedAt   Instant    `json:"createdAt"`
}
