package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

const (
	// open is the scope of routes that need no token.
	open = ""
	// anyToken is that of routes which every good token may use.
	anyToken = "any"
)

// routes is every route there is, with the scope that it needs. Package access
// decides whether a token has it.
func (s *surface) routes() {
	add(s, route{method: "GET", path: "/healthz", scope: open, id: "getHealth", tag: "Health", summary: "Is the process alive"}, (*API).getHealth)
	add(s, route{method: "GET", path: "/readyz", scope: open, id: "getReadiness", tag: "Health", summary: "Can the process do its work", errors: []int{503}}, (*API).getReadiness)
	add(s, route{method: "GET", path: "/metrics", scope: "metrics:read", id: "getMetrics", tag: "Health", summary: "Numbers for Prometheus", produces: "text/plain"}, (*API).getMetrics)

	add(s, route{method: "POST", path: "/api/v1/backup", scope: "backup:admin", id: "backUp", tag: "Health", summary: "Copy the SQLite database as it is now; on PostgreSQL use pg_dump", produces: backupType, errors: []int{409}, endless: true}, (*API).backup)

	add(s, route{method: "GET", path: "/api/v1/storage", scope: "storage:admin", id: "getStorage", tag: "Health", summary: "Tell how large the database is, by table and by lane, and what it grows by; for admins only"}, (*API).getStorage)
	add(s, route{method: "POST", path: "/api/v1/prune", scope: "storage:admin", id: "prune", tag: "Health", summary: "Remove what is older than it is kept, as happens every hour, or tell what would be removed"}, (*API).prune)

	add(s, route{method: "GET", path: client.HaltPath, scope: "halt:read", id: "getHalt", tag: "Health", summary: "Tell whether everything is halted"}, (*API).getHalt)
	add(s, route{method: "PUT", path: client.HaltPath, scope: "halt:admin", id: "halt", tag: "Health", summary: "Halt everything: nothing is started on any node, and what runs continues to its end"}, (*API).halt)
	add(s, route{method: "DELETE", path: client.HaltPath, scope: "halt:admin", id: "unhalt", tag: "Health", summary: "Lift the halt; if nothing is halted, nothing changes", status: http.StatusNoContent}, (*API).unhalt)

	add(s, route{method: "GET", path: "/openapi.json", scope: "docs:read", id: "getOpenAPI", tag: "Description", summary: "This API as an OpenAPI document", produces: "application/json"}, (*API).getDocument)
	add(s, route{method: "GET", path: "/docs", scope: "docs:read", id: "getDocs", tag: "Description", summary: "This API as a page to read", produces: "text/html"}, (*API).getDocs)
	add(s, route{method: "GET", path: "/api/v1/schemas", scope: "docs:read", id: "listSchemas", tag: "Description", summary: "List the kinds of definitions that have a JSON Schema"}, (*API).listSchemas)
	add(s, route{method: "GET", path: "/api/v1/schemas/{kind}", scope: "docs:read", id: "getSchema", tag: "Description", summary: "Show the JSON Schema of a kind of definition", produces: "application/json", errors: []int{404}}, (*API).getSchema)

	add(s, route{method: "POST", path: "/api/v1/jobs", scope: "jobs:write", id: "createJob", tag: "Jobs", summary: "Enqueue a job", status: http.StatusCreated}, (*API).createJob)
	add(s, route{method: "POST", path: client.JobsBulkPath, scope: "jobs:write", id: "createJobs", tag: "Jobs", summary: "Enqueue many jobs: all of them, or none", status: http.StatusCreated, maxBody: max(maxBulkBody, s.maxBody)}, (*API).createJobs)
	add(s, route{method: "POST", path: client.JobsRetryPath, scope: "jobs:write", id: "retryJobs", tag: "Jobs", summary: "Run failed jobs again that a filter picks"}, (*API).retryJobs)
	add(s, route{method: "POST", path: client.JobsCancelPath, scope: "jobs:write", id: "cancelJobs", tag: "Jobs", summary: "Cancel jobs that a filter picks"}, (*API).cancelJobs)
	add(s, route{method: "GET", path: "/api/v1/jobs", scope: "jobs:read", id: "listJobs", tag: "Jobs", summary: "List jobs, the newest first"}, (*API).listJobs)
	add(s, route{method: "GET", path: "/api/v1/jobs/{id}", scope: "jobs:read", id: "getJob", tag: "Jobs", summary: "Show a job, or wait for its end first", errors: []int{404, 503}, endless: true}, (*API).getJob)
	add(s, route{method: "DELETE", path: "/api/v1/jobs/{id}", scope: "jobs:write", id: "cancelJob", tag: "Jobs", summary: "Cancel a job", status: http.StatusNoContent, errors: []int{404, 409}}, (*API).cancelJob)
	add(s, route{method: "POST", path: "/api/v1/jobs/{id}/retry", scope: "jobs:write", id: "retryJob", tag: "Jobs", summary: "Run a failed job again, now", errors: []int{404, 409}}, (*API).retryJob)

	if s.workflows {
		s.laneRoutes()
		s.answerRoutes()
	}
	if s.sources {
		s.sourceRoutes()
	}
	if s.schedules {
		s.scheduleRoutes()
		s.calendarRoutes()
	}
	if s.tools {
		s.connectionRoutes()
	}
	if s.hooks {
		s.hookRoutes()
	}
	if s.workers {
		s.taskRoutes()
	}

	add(s, route{method: "GET", path: "/api/v1/stream", scope: "stream:read", id: "stream", tag: "Events", summary: "Follow every change of state, as server-sent events", produces: "text/event-stream", endless: true}, (*API).stream)

	add(s, route{method: "GET", path: client.NodesPath, scope: "nodes:read", id: "listNodes", tag: "Health", summary: "List the processes on the database, with the schemas that they serve"}, (*API).listNodes)

	add(s, route{method: "POST", path: "/api/v1/tokens", scope: "tokens:admin", id: "createToken", tag: "Tokens", summary: "Create a token; its text is shown this once", status: http.StatusCreated}, (*API).createToken)
	add(s, route{method: "GET", path: "/api/v1/tokens", scope: "tokens:read", id: "listTokens", tag: "Tokens", summary: "List your tokens, or everybody's with tokens:admin"}, (*API).listTokens)
	add(s, route{method: "GET", path: "/api/v1/tokens/current", scope: anyToken, id: "getCurrentToken", tag: "Tokens", summary: "Show the token that you ask with, and what it may do"}, (*API).getCurrentToken)
	add(s, route{method: "GET", path: "/api/v1/tokens/{id}", scope: "tokens:read", id: "getToken", tag: "Tokens", summary: "Show a token", errors: []int{404}}, (*API).getToken)
	add(s, route{method: "DELETE", path: "/api/v1/tokens/{id}", scope: "tokens:write", id: "revokeToken", tag: "Tokens", summary: "Revoke a token of yours, or anybody's with tokens:admin", status: http.StatusNoContent, errors: []int{404}}, (*API).revokeToken)
	add(s, route{method: "POST", path: "/api/v1/tokens/{id}/revoke", scope: "tokens:write", id: "revokeTokenByPost", tag: "Tokens", summary: "Revoke a token, for clients that cannot DELETE", status: http.StatusNoContent, errors: []int{404}}, (*API).revokeToken)
}

// laneRoutes are those of what runs by itself, and of its runs.
func (s *surface) laneRoutes() {
	add(s, route{method: "GET", path: "/api/v1/lanes", scope: "lanes:read", id: "listLanes", tag: "Lanes", summary: "List workflows, sources and schedules, by kind and name"}, (*API).listLanes)
	add(s, route{method: "GET", path: "/api/v1/lanes/{kind}/{name}/why", scope: "lanes:read", id: "whyLane", tag: "Lanes", summary: "Tell why something runs, does not run, or waits", errors: []int{404}}, (*API).whyLane)

	add(s, route{method: "GET", path: "/api/v1/timeline", scope: "lanes:read", id: "getTimeline", tag: "Lanes", summary: "List the runs of the past and what is due in the future, in the order of time"}, (*API).getTimeline)

	add(s, route{method: "GET", path: "/api/v1/workflows", scope: "workflows:read", id: "listWorkflows", tag: "Workflows", summary: "List workflows by name"}, (*API).listWorkflows)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}", scope: "workflows:read", id: "getWorkflow", tag: "Workflows", summary: "Show a workflow with its script", errors: []int{404}}, (*API).getWorkflow)
	add(s, route{method: "PUT", path: "/api/v1/workflows/{name}", scope: "workflows:write", id: "deployWorkflow", tag: "Workflows", summary: "Deploy a script; the same one again changes nothing", status: http.StatusOK, also: http.StatusCreated, errors: []int{404, 409, 412}, maxBody: maxScriptBody}, (*API).deployWorkflow)
	add(s, route{method: "DELETE", path: "/api/v1/workflows/{name}", scope: "workflows:write", id: "deleteWorkflow", tag: "Workflows", summary: "Delete a workflow; what it did can still be read", status: http.StatusNoContent, errors: []int{404, 409}}, (*API).deleteWorkflow)
	add(s, route{method: "POST", path: "/api/v1/workflows/{name}/run", scope: "workflows:write", id: "runWorkflow", tag: "Workflows", summary: "Run every producer now; refused with run_active, backing_off, fixing, paused, halted or not_deployed", status: http.StatusAccepted, errors: []int{404, 409}}, (*API).runWorkflow)
	add(s, route{method: "POST", path: "/api/v1/workflows/{name}/pause", scope: "workflows:write", id: "pauseWorkflow", tag: "Workflows", summary: "Pause a workflow, until a time or until it is resumed: nothing more is started", errors: []int{404}}, (*API).pauseWorkflow)
	add(s, route{method: "POST", path: "/api/v1/workflows/{name}/resume", scope: "workflows:write", id: "resumeWorkflow", tag: "Workflows", summary: "Resume a workflow that is paused, or halted by something that is fixed now", errors: []int{404}}, (*API).resumeWorkflow)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/versions", scope: "workflows:read", id: "listWorkflowVersions", tag: "Workflows", summary: "List what was deployed, the newest first", errors: []int{404}}, (*API).listVersions)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/repairs", scope: "workflows:read", id: "listWorkflowRepairs", tag: "Workflows", summary: "List the scripts that were proposed after a failure, the newest first", errors: []int{404}}, (*API).listRepairs)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/inputs", scope: "workflows:read", id: "listInputs", tag: "Inputs", summary: "List what a workflow found outside, the newest first", errors: []int{404}}, (*API).listInputs)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/outputs", scope: "workflows:read", id: "listOutputs", tag: "Inputs", summary: "List what a workflow did outside, the newest first", errors: []int{404}}, (*API).listOutputs)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/partitions", scope: "workflows:read", id: "listPartitions", tag: "Inputs", summary: "List the partitions of a workflow that are in one state, such as those that need attention", errors: []int{404}}, (*API).listPartitions)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/events", scope: "workflows:read", id: "listEvents", tag: "Inputs", summary: "List the events of a workflow, the newest first", errors: []int{404}}, (*API).listEvents)
	add(s, route{method: "POST", path: "/api/v1/workflows/{name}/events", scope: "workflows:write", id: "publishEvent", tag: "Inputs", summary: "Publish an event from outside; 200 if its messageId is known already", status: http.StatusCreated, also: http.StatusOK, errors: []int{404}}, (*API).publishEvent)

	add(s, route{method: "GET", path: "/api/v1/inputs/{id}", scope: "workflows:read", id: "getInput", tag: "Inputs", summary: "Show an input with what came of it", errors: []int{404}}, (*API).getInput)
	add(s, route{method: "POST", path: "/api/v1/inputs/{id}/skip", scope: "workflows:write", id: "skipInput", tag: "Inputs", summary: "Give up an input: its pending events are skipped", errors: []int{404}}, (*API).skipInput)

	add(s, route{method: "GET", path: "/api/v1/runs", scope: "runs:read", id: "listRuns", tag: "Runs", summary: "List runs, the newest first"}, (*API).listRuns)
	add(s, route{method: "GET", path: "/api/v1/runs/{id}", scope: "runs:read", id: "getRun", tag: "Runs", summary: "Show a run with its retry chain, its calls and its log", errors: []int{404}}, (*API).getRun)
	add(s, route{method: "POST", path: "/api/v1/runs/{id}/cancel", scope: "runs:write", id: "cancelRun", tag: "Runs", summary: "Cancel a run that has sent nothing yet", errors: []int{404, 409}}, (*API).cancelRun)
}

// answerRoutes are those by which people decide about runs.
func (s *surface) answerRoutes() {
	add(s, route{method: "POST", path: "/api/v1/runs/{id}/approve", scope: "runs:write", id: "approveRun", tag: "Approvals", summary: "Let a run make the call that it asks for; refused with decided, changed or expired", errors: []int{404, 409}}, (*API).approveRun)
	add(s, route{method: "POST", path: "/api/v1/runs/{id}/reject", scope: "runs:write", id: "rejectRun", tag: "Approvals", summary: "End a run that asks, release its events and pause its workflow", errors: []int{404, 409}}, (*API).rejectRun)
	add(s, route{method: "POST", path: "/api/v1/runs/{id}/resume", scope: "runs:write", id: "resumeRun", tag: "Approvals", summary: "Say that what stopped a run is fixed; refused with approval or outcome_unknown", errors: []int{404, 409}}, (*API).resumeRun)
	add(s, route{method: "POST", path: "/api/v1/runs/{id}/resolve", scope: "runs:write", id: "resolveRun", tag: "Approvals", summary: "Record the outcome of a call; refused with reconciling or cannot_ask", errors: []int{404, 409}}, (*API).resolveRun)
	add(s, route{method: "POST", path: "/api/v1/runs/{id}/replay", scope: "runs:read", id: "replayRun", tag: "Runs", summary: "Replay a run with the data it read and without making calls; it changes nothing. Needs workflows:read as well, and workflows:write with a script of your own", errors: []int{404}, maxBody: maxScriptBody}, (*API).replayRun)
	add(s, route{method: "GET", path: "/api/v1/approvals", scope: "runs:read", id: "listApprovals", tag: "Approvals", summary: "List what people are asked, the newest first"}, (*API).listApprovals)
	add(s, route{method: "GET", path: "/api/v1/workflows/{name}/approvals/rules", scope: "workflows:read", id: "listApprovalRules", tag: "Approvals", summary: "List the methods that a workflow may call without asking, because they are always approved", errors: []int{404}}, (*API).listRules)
	add(s, route{method: "DELETE", path: "/api/v1/workflows/{name}/approvals/rules/{tool}/{method}", scope: "workflows:write", id: "revokeApprovalRule", tag: "Approvals", summary: "Make a workflow ask again before it calls a method", status: http.StatusNoContent, errors: []int{404}}, (*API).revokeRule)
}

// sourceRoutes are those of what is fetched into tables.
func (s *surface) sourceRoutes() {
	add(s, route{method: "GET", path: "/api/v1/sources", scope: "sources:read", id: "listSources", tag: "Sources", summary: "List sources by name"}, (*API).listSources)
	add(s, route{method: "GET", path: "/api/v1/sources/{name}", scope: "sources:read", id: "getSource", tag: "Sources", summary: "Show a source with its definition, its gates and its last runs", errors: []int{404}}, (*API).getSource)
	add(s, route{method: "PUT", path: "/api/v1/sources/{name}", scope: "sources:write", id: "applySource", tag: "Sources", summary: "Apply a definition, in JSON or YAML; the same one again changes nothing. Refused with table_mismatch or deleting", status: http.StatusOK, also: http.StatusCreated, errors: []int{404, 409, 412}, maxBody: maxDefinitionBody, definition: "source"}, (*API).applySource)
	add(s, route{method: "DELETE", path: "/api/v1/sources/{name}", scope: "sources:write", id: "deleteSource", tag: "Sources", summary: "Delete a source with its rows; its runs can still be read. Refused with source_needed while something needs it", errors: []int{404, 409}, endless: true}, (*API).deleteSource)
	add(s, route{method: "POST", path: "/api/v1/sources/{name}/run", scope: "sources:write", id: "runSource", tag: "Sources", summary: "Fetch now; refused with run_active, backing_off, paused or halted", status: http.StatusAccepted, errors: []int{404, 409}}, (*API).runSource)
	add(s, route{method: "POST", path: "/api/v1/sources/{name}/pause", scope: "sources:write", id: "pauseSource", tag: "Sources", summary: "Pause a source, until a time or until it is resumed: a running fetch is cancelled, and no new one is started", errors: []int{404}}, (*API).pauseSource)
	add(s, route{method: "POST", path: "/api/v1/sources/{name}/resume", scope: "sources:write", id: "resumeSource", tag: "Sources", summary: "Resume a source that is paused, or halted by something that is fixed now", errors: []int{404}}, (*API).resumeSource)
	add(s, route{method: "POST", path: "/api/v1/sources/{name}/reset", scope: "sources:write", id: "resetSource", tag: "Sources", summary: "Clear the failures of a source and the position of its last unfinished fetch", errors: []int{404}}, (*API).resetSource)
	add(s, route{method: "GET", path: "/api/v1/sources/{name}/rows", scope: "sources:read", id: "listSourceRows", tag: "Sources", summary: "List the rows of a source, the newest first", errors: []int{404}}, (*API).listRows)
	add(s, route{method: "GET", path: "/api/v1/sources/{name}/rejects", scope: "sources:read", id: "listSourceRejects", tag: "Sources", summary: "List rejected rows, newest first", errors: []int{404}}, (*API).listRejects)
	add(s, route{method: "GET", path: "/api/v1/sources/{name}/versions", scope: "sources:read", id: "listSourceVersions", tag: "Sources", summary: "List the definitions that were applied, the newest first", errors: []int{404}}, (*API).listSourceVersions)
	if s.fetcher {
		add(s, route{method: "POST", path: "/api/v1/sources/test", scope: "sources:write", id: "testSource", tag: "Sources", summary: "Fetch the first pages of a definition, in JSON or YAML, and write nothing; the codes of what goes wrong outside begin with fetch_", maxBody: maxDefinitionBody, definition: "source"}, (*API).trySource)
	}
}

// scheduleRoutes are those of graphs that run at their instants, of who allowed
// it, and of what it cost.
func (s *surface) scheduleRoutes() {
	add(s, route{method: "POST", path: "/api/v1/schedules", scope: "schedules:write", id: "createSchedule", tag: "Schedules", summary: "Create a schedule, with a grant for its graph unless it names one; refused with name_taken", status: http.StatusCreated, errors: []int{409}}, (*API).createSchedule)
	add(s, route{method: "GET", path: "/api/v1/schedules", scope: "schedules:read", id: "listSchedules", tag: "Schedules", summary: "List your schedules by name"}, (*API).listSchedules)
	add(s, route{method: "PUT", path: "/api/v1/schedules/by-name/{name}", scope: "schedules:write", id: "applySchedule", tag: "Schedules", summary: "Create or change your schedule of that name; the same definition again changes nothing", status: http.StatusOK, also: http.StatusCreated, errors: []int{404, 409, 412}}, (*API).applySchedule)
	add(s, route{method: "GET", path: "/api/v1/schedules/{id}", scope: "schedules:read", id: "getSchedule", tag: "Schedules", summary: "Show a schedule", errors: []int{404}}, (*API).getSchedule)
	add(s, route{method: "PATCH", path: "/api/v1/schedules/{id}", scope: "schedules:write", id: "updateSchedule", tag: "Schedules", summary: "Change what is given of a schedule, and keep the rest; refused with name_taken", errors: []int{404, 409, 412}}, (*API).updateSchedule)
	add(s, route{method: "DELETE", path: "/api/v1/schedules/{id}", scope: "schedules:write", id: "deleteSchedule", tag: "Schedules", summary: "Delete a schedule, and revoke the grant that was made for it", errors: []int{404}}, (*API).deleteSchedule)
	add(s, route{method: "GET", path: "/api/v1/schedules/{id}/runs", scope: "schedules:read", id: "listScheduleRuns", tag: "Schedules", summary: "List the slots that started, or those of a status, the latest instant first; also of a deleted schedule", errors: []int{404}}, (*API).listScheduleRuns)
	add(s, route{method: "GET", path: "/api/v1/schedules/{id}/slots", scope: "schedules:read", id: "listSlots", tag: "Schedules", summary: "List all known slots with their outcome, latest first; also of a deleted schedule", errors: []int{404}}, (*API).listSlots)
	add(s, route{method: "GET", path: "/api/v1/schedules/{id}/slots/{instant}", scope: "schedules:read", id: "getSlot", tag: "Schedules", summary: "Show a slot, with what its command, URL or job left behind; of very many that did not run, the one that stands for them", errors: []int{404}}, (*API).getSlot)
	add(s, route{method: "POST", path: "/api/v1/schedules/{id}/slots/{instant}/retry", scope: "schedules:write", id: "retrySlot", tag: "Schedules", summary: "Run a slot again that failed, was passed over, or of which nobody knows whether it ran; refused with slot_waits, slot_runs, slot_succeeded or paused", errors: []int{404, 409}}, (*API).retrySlot)
	add(s, route{method: "POST", path: "/api/v1/schedules/{id}/slots/{instant}/skip", scope: "schedules:write", id: "skipSlot", tag: "Schedules", summary: "Keep a slot from running, or leave one that failed as it is; refused with slot_runs or slot_closed", errors: []int{404, 409}}, (*API).skipSlot)
	add(s, route{method: "GET", path: "/api/v1/schedules/{id}/next", scope: "schedules:read", id: "nextOfSchedule", tag: "Schedules", summary: "Tell the next instants, with days of clock changes marked", errors: []int{404}}, (*API).nextOfSchedule)
	add(s, route{method: "POST", path: "/api/v1/schedules/{id}/run", scope: "schedules:write", id: "runSchedule", tag: "Schedules", summary: "Run now; refused with run_active or paused", status: http.StatusAccepted, errors: []int{404, 409}}, (*API).runSchedule)
	add(s, route{method: "POST", path: "/api/v1/schedules/{id}/pause", scope: "schedules:write", id: "pauseSchedule", tag: "Schedules", summary: "Disable a schedule, until a time or until it is resumed; what runs continues to its end", errors: []int{404}}, (*API).pauseSchedule)
	add(s, route{method: "POST", path: "/api/v1/schedules/{id}/resume", scope: "schedules:write", id: "resumeSchedule", tag: "Schedules", summary: "Enable a schedule", errors: []int{404}}, (*API).resumeSchedule)
	add(s, route{method: "POST", path: "/api/v1/schedules/{id}/backfill", scope: "schedules:write", id: "planBackfill", tag: "Schedules", summary: "Plan to run slots of the past; nothing runs until the plan is confirmed", status: http.StatusCreated, errors: []int{404}}, (*API).planBackfill)

	add(s, route{method: "GET", path: "/api/v1/schedules/{id}/backfills", scope: "schedules:read", id: "listBackfills", tag: "Schedules", summary: "List the backfills of a schedule, the newest first", errors: []int{404}}, (*API).listBackfills)
	add(s, route{method: "GET", path: "/api/v1/questions", scope: "runs:read", id: "listQuestions", tag: "Approvals", summary: "List what graphs of your schedules ask people, the newest first; answered by approving the run"}, (*API).listQuestions)

	add(s, route{method: "GET", path: "/api/v1/backfills/{id}", scope: "schedules:read", id: "getBackfill", tag: "Schedules", summary: "Show a backfill and how far it has come", errors: []int{404}}, (*API).getBackfill)
	add(s, route{method: "POST", path: "/api/v1/backfills/{id}/confirm", scope: "schedules:write", id: "confirmBackfill", tag: "Schedules", summary: "Let a backfill begin; refused with plan_changed or not_planned", errors: []int{404, 409}}, (*API).confirmBackfill)
	add(s, route{method: "POST", path: "/api/v1/backfills/{id}/pause", scope: "schedules:write", id: "pauseBackfill", tag: "Schedules", summary: "Start no more slots of a backfill; refused with wrong_state", errors: []int{404, 409}}, moveBackfill(schedule.BackfillPaused))
	add(s, route{method: "POST", path: "/api/v1/backfills/{id}/resume", scope: "schedules:write", id: "resumeBackfill", tag: "Schedules", summary: "Go on with a backfill; refused with wrong_state", errors: []int{404, 409}}, moveBackfill(schedule.BackfillRunning))
	add(s, route{method: "POST", path: "/api/v1/backfills/{id}/cancel", scope: "schedules:write", id: "cancelBackfill", tag: "Schedules", summary: "Give up a backfill; slots that have begun go on", errors: []int{404, 409}}, moveBackfill(schedule.BackfillCancelled))

	add(s, route{method: "POST", path: "/api/v1/grants", scope: "grants:write", id: "createGrant", tag: "Grants", summary: "Allow graphs to run in your name", status: http.StatusCreated}, (*API).createGrant)
	add(s, route{method: "GET", path: "/api/v1/grants", scope: "grants:read", id: "listGrants", tag: "Grants", summary: "List your grants, the newest first"}, (*API).listGrants)
	add(s, route{method: "GET", path: "/api/v1/grants/{id}", scope: "grants:read", id: "getGrant", tag: "Grants", summary: "Show a grant", errors: []int{404}}, (*API).getGrant)
	add(s, route{method: "POST", path: "/api/v1/grants/{id}/revoke", scope: "grants:write", id: "revokeGrant", tag: "Grants", summary: "Revoke a grant for good", errors: []int{404}}, (*API).revokeGrant)

	add(s, route{method: "GET", path: "/api/v1/billing/accounts", scope: "billing:read", id: "listBillingAccounts", tag: "Billing", summary: "List your billing accounts, the oldest first, with what was spent by day"}, (*API).listAccounts)
	add(s, route{method: "PATCH", path: "/api/v1/billing/accounts/{id}", scope: "billing:write", id: "updateBillingAccount", tag: "Billing", summary: "Set the key and the prepaid balance of a billing account; for admins only", errors: []int{404}}, (*API).updateAccount)
	add(s, route{method: "GET", path: "/api/v1/billing/receipts", scope: "billing:read", id: "listReceipts", tag: "Billing", summary: "List the receipts of your accounts, the newest first"}, (*API).listReceipts)
}

// hookRoutes are those of what others send. The deliveries themselves come in at an
// address of their own.
func (s *surface) hookRoutes() {
	add(s, route{method: "GET", path: "/api/v1/hooks", scope: "hooks:read", id: "listHooks", tag: "Hooks", summary: "List hooks by name"}, (*API).listHooks)
	add(s, route{method: "GET", path: "/api/v1/hooks/{name}", scope: "hooks:read", id: "getHook", tag: "Hooks", summary: "Show a hook", errors: []int{404}}, (*API).getHook)
	add(s, route{method: "PUT", path: "/api/v1/hooks/{name}", scope: "hooks:write", id: "applyHook", tag: "Hooks", summary: "Apply a definition, in JSON or YAML; the same one again changes nothing. It needs the scope of what a delivery becomes as well", status: http.StatusOK, also: http.StatusCreated, errors: []int{404, 412}, maxBody: maxDefinitionBody, definition: "hook"}, (*API).applyHook)
	add(s, route{method: "DELETE", path: "/api/v1/hooks/{name}", scope: "hooks:write", id: "deleteHook", tag: "Hooks", summary: "Delete a hook; what was delivered can still be read", status: http.StatusNoContent, errors: []int{404}}, (*API).deleteHook)
	add(s, route{method: "GET", path: "/api/v1/hooks/{name}/deliveries", scope: "hooks:read", id: "listDeliveries", tag: "Hooks", summary: "List what was sent to a hook, the newest first, without bodies; also of a deleted hook", errors: []int{404}}, (*API).listDeliveries)
	add(s, route{method: "GET", path: "/api/v1/hooks/{name}/deliveries/{id}", scope: "hooks:write", id: "getDelivery", tag: "Hooks", summary: "Show a delivery with its body", errors: []int{404}}, (*API).getDelivery)
	add(s, route{method: "POST", path: "/api/v1/hooks/{name}/deliveries/{id}/redeliver", scope: "hooks:write", id: "redeliver", tag: "Hooks", summary: "Let a delivery have its effect again, by the hook as it is now; refused with refused, filtered, or by what it would become", status: http.StatusAccepted, errors: []int{404, 409}}, (*API).redeliver)
}

// taskRoutes are those of tasks that programs of users serve, and of the programs.
func (s *surface) taskRoutes() {
	add(s, route{method: "GET", path: "/api/v1/tasks", scope: "jobs:read", id: "listTasks", tag: "Workers", summary: "List the tasks that workers serve, by name"}, (*API).listTasks)
	add(s, route{method: "GET", path: "/api/v1/tasks/{name}", scope: "jobs:read", id: "getTask", tag: "Workers", summary: "Show a task that workers serve", errors: []int{404}}, (*API).getTask)
	add(s, route{method: "PUT", path: "/api/v1/tasks/{name}", scope: "jobs:write", id: "declareTask", tag: "Workers", summary: "Declare a task that workers serve; the same again changes nothing. What another user declared can be changed with jobs:admin only", status: http.StatusOK, also: http.StatusCreated, errors: []int{404, 409}}, (*API).putTask)
	add(s, route{method: "DELETE", path: "/api/v1/tasks/{name}", scope: "jobs:write", id: "deleteTask", tag: "Workers", summary: "Delete a task that workers serve; refused with jobs_wait", status: http.StatusNoContent, errors: []int{404, 409}}, (*API).deleteTask)
	add(s, route{method: "POST", path: "/api/v1/tasks/{name}/claim", scope: "jobs:write", id: "claimJobs", tag: "Workers", summary: "Take jobs to do; waits for the first if asked to", errors: []int{404, 503}, endless: true}, (*API).claimJobs)
	add(s, route{method: "POST", path: "/api/v1/tasks/{name}/complete", scope: "jobs:write", id: "completeJobs", tag: "Workers", summary: "Say that jobs were done, with their results", errors: []int{404}, maxBody: max(maxEndBody, s.maxBody)}, (*API).completeJobs)
	add(s, route{method: "POST", path: "/api/v1/tasks/{name}/fail", scope: "jobs:write", id: "failJobs", tag: "Workers", summary: "Say that jobs were not done, or give them back", errors: []int{404}, maxBody: max(maxEndBody, s.maxBody)}, (*API).failJobs)
	add(s, route{method: "POST", path: "/api/v1/tasks/{name}/extend", scope: "jobs:write", id: "extendLeases", tag: "Workers", summary: "Ask for more time for jobs in hand", errors: []int{404}}, (*API).extendLeases)
}

// connectionRoutes are those of what scripts may touch.
func (s *surface) connectionRoutes() {
	add(s, route{method: "GET", path: "/api/v1/connections", scope: "connections:read", id: "listConnections", tag: "Connections", summary: "List connections by name"}, (*API).listConnections)
	add(s, route{method: "GET", path: "/api/v1/connections/{name}", scope: "connections:read", id: "getConnection", tag: "Connections", summary: "Show a connection", errors: []int{404}}, (*API).getConnection)
	add(s, route{method: "POST", path: "/api/v1/connections/{name}/test", scope: "connections:write", id: "testConnection", tag: "Connections", summary: "Try a connection out, without an effect outside", errors: []int{404}}, (*API).testConnection)
	add(s, route{method: "GET", path: "/api/v1/connections/{name}/pins", scope: "connections:read", id: "listPins", tag: "Connections", summary: "Ask an MCP server for its tools, and compare them with what was pinned; refused with nothing_to_pin", errors: []int{404, 409, 503}}, (*API).listPins)
	add(s, route{method: "POST", path: "/api/v1/connections/{name}/pins", scope: "connections:write", id: "pinMethods", tag: "Connections", summary: "Agree to tools of an MCP server as they are now; refused with nothing_to_pin, changed or fixed", errors: []int{404, 409, 503}}, (*API).pinMethods)
}

// route is one line of the list.
type route struct {
	method, path string
	scope        string // open, or what the caller must be allowed
	id           string // the operation's, for clients that are generated
	tag          string
	summary      string
	status       int    // of success; 0 is 200
	also         int    // another status of success, with the same answer; mostly 0
	errors       []int  // that this route has beside the usual ones
	produces     string // content type, if it is not JSON
	endless      bool   // may take longer than handlerTimeout
	maxBody      int64  // bytes; 0 is what bodies usually may have
	definition   string // the kind of thing that its body defines, in JSON or YAML; mostly empty
}

// output is an answer that is its body alone.
type output[T any] struct{ Body T }

// pageOutput is an answer that is a page of a list.
type pageOutput[T any] struct{ Body client.Page[T] }

// add makes a handler answer a route. Its errors become problems.
func add[I, O any](s *surface, r route, handler func(*API, context.Context, *I) (*O, error)) {
	if r.scope == open {
		s.openPaths[r.path] = true
	} else if r.scope != anyToken && !access.IsRule(r.scope) {
		panic("api: " + r.method + " " + r.path + " has no rule for who may ask")
	} else if r.scope != anyToken {
		resource, _, _ := strings.Cut(r.scope, ":")
		s.resources[resource] = true
	}
	s.rules = append(s.rules, rule{r.method + " " + r.path, r.scope})
	op := s.operation(r)
	s.mostBody = max(s.mostBody, op.MaxBodyBytes-1)
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		if !r.endless {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, handlerTimeout)
			defer cancel()
		}
		a := callOf(ctx).api
		out, err := bounded(ctx, in, func(ctx context.Context, in *I) (*O, error) { return handler(a, ctx, in) })
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return out, nil
	})
	if r.also != 0 { // huma described one; both share the map
		first := op.Responses[strconv.Itoa(r.status)]
		op.Responses[strconv.Itoa(r.also)] = &huma.Response{Description: http.StatusText(r.also), Content: first.Content, Headers: first.Headers}
	}
}

// operation describes a route to huma.
func (s *surface) operation(r route) huma.Operation {
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Tags: []string{r.tag},
		DefaultStatus: r.status, MaxBodyBytes: cmp.Or(r.maxBody, s.maxBody) + 1, BodyReadTimeout: bodyTimeout,
		Security:    securityOf(r.scope),
		Middlewares: huma.Middlewares{requireScope(r.scope)},
		Responses:   s.errorResponses(r),
	}
	switch r.scope {
	case open:
	case anyToken:
		op.Description = "Every token may ask."
	default:
		op.Description = "Needs the scope `" + r.scope + "`."
	}
	if r.definition != "" { // YAML is described by the field that takes the body
		schema := &huma.Schema{Type: huma.TypeObject, Description: "See /api/v1/schemas/" + r.definition + ". The kind and the name may be left out."}
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
		op.SkipValidateBody = true
	}
	if r.produces != "" {
		schema := &huma.Schema{Type: huma.TypeString}
		if r.produces == "application/json" {
			schema.Type = huma.TypeObject
		}
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{r.produces: {Schema: schema}}}
	}
	return op
}

// requireScope stands before a handler, and before its request is read.
func requireScope(scope string) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if scope != open && scope != anyToken {
			c := callOf(ctx.Context())
			if err := access.Require(c.token, scope); err != nil {
				r, w := humago.Unwrap(ctx)
				c.api.fail(w, r, err)
				return
			}
		}
		next(ctx)
	}
}

// rule is who may use a route.
type rule struct{ route, scope string }

// allowed reports whether a token may use the route.
func (r rule) allowed(t *userstore.Token) bool {
	return r.scope == open || r.scope == anyToken || access.Allowed(t, r.scope)
}
