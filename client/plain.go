package client

import "encoding/json"

// PlainRun is what a schedule runs instead of a graph: exactly one of a command,
// a URL and a job. It needs no grant and costs nothing.
type PlainRun struct {
	Command []string          `json:"command,omitempty" doc:"A program and its arguments; never a shell. Exit code 0 is success."`
	Dir     string            `json:"dir,omitempty" doc:"Where the command runs."`
	Env     map[string]string `json:"env,omitempty" doc:"Variables of the command. ${NAME} is resolved on the server when it starts."`
	URL     string            `json:"url,omitempty" doc:"Is called; a status of 2xx is success."`
	Method  string            `json:"method,omitempty" doc:"Of the call. Absent: POST."`
	Headers map[string]string `json:"headers,omitempty" doc:"Of the call. ${NAME} is resolved on the server when it is made."`
	Body    json.RawMessage   `json:"body,omitempty" doc:"Of the call: a text as it is, anything else as JSON."`
	Timeout string            `json:"timeout,omitempty" example:"30m" doc:"How long it may take. Absent: 24h for a command and a job, 5m for a URL."`
	Job     *PlainJob         `json:"job,omitempty" doc:"A job of the queue; success is that it succeeded."`
}

// PlainJob is a job that a schedule enqueues.
type PlainJob struct {
	Task    string          `json:"task" example:"http"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Lane    string          `json:"lane,omitempty"`
}

// Missed says what becomes of slots that came due while no worker was running.
type Missed struct {
	Policy string `json:"policy" enum:"skip,last,all" doc:"skip: none of them runs; last: the latest one does; all: each does."`
	Within string `json:"within,omitempty" example:"12h" doc:"How late a slot may be. Absent: any."`
}

// Retry says how often a slot is tried.
type Retry struct {
	Attempts int    `json:"attempts" minimum:"1" maximum:"100" doc:"The first one counts."`
	Within   string `json:"within,omitempty" example:"2h" doc:"How long after the first start another attempt may begin; the pauses between them are spread over it."`
}

// PlainOutput is what a command, a URL or a job left behind: the end of what a
// command wrote, or the beginning of an answer.
type PlainOutput struct {
	ExitCode *int   `json:"exitCode,omitempty" doc:"Of a command that ended by itself."`
	Signal   string `json:"signal,omitempty" doc:"That ended the command; absent if none did."`
	Stdout   string `json:"stdout,omitempty" doc:"The last 64 KiB. What is no text is written visibly, such as \\xff."`
	Stderr   string `json:"stderr,omitempty" doc:"The last 64 KiB."`
	// How much of each there was, in bytes.
	StdoutBytes int64 `json:"stdoutBytes,omitempty" doc:"How much it wrote in all."`
	StderrBytes int64 `json:"stderrBytes,omitempty" doc:"How much it wrote in all."`

	Status  int               `json:"status,omitempty" doc:"Of the answer of a URL."`
	Headers map[string]string `json:"headers,omitempty" doc:"Of the answer."`
	Body    string            `json:"body,omitempty" doc:"The first 64 KiB of the answer."`

	JobID     string          `json:"jobId,omitempty" doc:"Of the job that was enqueued."`
	Result    json.RawMessage `json:"result,omitempty" doc:"Of the job."`
	Truncated bool            `json:"truncated,omitempty" doc:"There was more than is kept, or than is shown here."`
}
