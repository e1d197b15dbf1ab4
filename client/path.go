package client

import (
	"net/url"
	"strings"
)

// Where things are on a server.
const (
	AccountsPath    = "/api/v1/billing/accounts"
	ApprovalsPath   = "/api/v1/approvals"
	BackfillsPath   = "/api/v1/backfills"
	ConnectionsPath = "/api/v1/connections"
	GrantsPath      = "/api/v1/grants"
	HooksPath       = "/api/v1/hooks"
	InputsPath      = "/api/v1/inputs"
	JobsPath        = "/api/v1/jobs"
	LanesPath       = "/api/v1/lanes"
	NodesPath       = "/api/v1/nodes"
	QuestionsPath   = "/api/v1/questions"
	ReceiptsPath    = "/api/v1/billing/receipts"
	RunsPath        = "/api/v1/runs"
	SchedulesPath   = "/api/v1/schedules"
	SourcesPath     = "/api/v1/sources"
	WorkflowsPath   = "/api/v1/workflows"
)

// What is asked of many jobs at once.
const (
	JobsBulkPath   = JobsPath + ":bulk"
	JobsRetryPath  = JobsPath + ":retry"
	JobsCancelPath = JobsPath + ":cancel"
)

// JobPath is where a job is.
func JobPath(id string) string { return join(JobsPath, id, nil) }

// RunPath is where a run is, or something below it.
func RunPath(id string, below ...string) string { return join(RunsPath, id, below) }

// WorkflowPath is where a workflow is, or something below it.
func WorkflowPath(name string, below ...string) string { return join(WorkflowsPath, name, below) }

// SourcePath is where a source is, or something below it.
func SourcePath(name string, below ...string) string { return join(SourcesPath, name, below) }

// HookPath is where a hook is, or something below it.
func HookPath(name string, below ...string) string { return join(HooksPath, name, below) }

// DeliveryPath is where a delivery is, by its id or the sender's, or something below
// it.
func DeliveryPath(hook, id string, below ...string) string {
	return join(HookPath(hook, "deliveries"), id, below)
}

// SchedulePath is where a schedule is, by its id, or something below it.
func SchedulePath(id string, below ...string) string { return join(SchedulesPath, id, below) }

// NamedSchedulePath is where a schedule is applied.
func NamedSchedulePath(name string) string { return join(SchedulesPath+"/by-name", name, nil) }

// WhyPath is where a lane explains itself.
func WhyPath(kind, name string) string {
	return join(LanesPath, kind, []string{url.PathEscape(name), "why"})
}

// join puts together the path of one thing; what is below it is escaped already.
func join(folder, name string, below []string) string {
	return folder + "/" + strings.Join(append([]string{url.PathEscape(name)}, below...), "/")
}
