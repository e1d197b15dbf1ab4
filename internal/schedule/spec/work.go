package spec

import (
	"encoding/json"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/when"
)

// writtenRun is what runs instead of a graph.
type writtenRun struct {
	Command []definition.Scalar          `json:"command" doc:"A program and its arguments, never a shell. Exit code 0 is success."`
	Dir     string                       `json:"dir" doc:"Where the command runs. In a served folder it may be relative to the definition's folder, which is the default."`
	Env     map[string]definition.Scalar `json:"env" doc:"Variables of the command; ${NAME} is resolved on the server when it starts."`
	URL     string                       `json:"url" doc:"Is called; a status of 2xx is success."`
	Method  string                       `json:"method" doc:"Of the call."`
	Headers map[string]definition.Scalar `json:"headers" doc:"Of the call; ${NAME} is resolved on the server when it is made."`
	Body    json.RawMessage              `json:"body" doc:"Of the call: a text as it is, anything else as JSON."`
	Timeout definition.Scalar            `json:"timeout" doc:"How long it may take, such as 30m."`
	Job     *writtenJob                  `json:"job" doc:"A job of the queue; success is that it succeeded."`
}

type writtenJob struct {
	Task    string          `json:"task" definition:"required" doc:"The task of the job."`
	Payload json.RawMessage `json:"payload" doc:"What the job gets."`
	Lane    string          `json:"lane" doc:"Jobs of one lane run one after the other."`
}

type writtenMissed struct {
	Policy string            `json:"policy" definition:"required,oneof=skip|last|all" doc:"skip: none of them runs; last: the latest one does; all: each does."`
	Within definition.Scalar `json:"within" doc:"How late a slot may be, such as 12h."`
}

type writtenRetry struct {
	Attempts int               `json:"attempts" definition:"required,min=1,max=100" doc:"The first one counts."`
	Within   definition.Scalar `json:"within" doc:"How long after the first start another attempt may begin, such as 2h; the pauses are spread over it."`
}

// checkWork finds what is wrong with what runs, and with doing it again.
func (w written) checkWork(faults *definition.Faults) {
	switch {
	case w.Run != nil && w.Graph != "":
		faults.Add("/run", "a schedule has either a graph or a run")
	case w.Run != nil:
		work.Check(*w.Run.request(), func(pointer, format string, values ...any) { faults.Add("/run"+pointer, format, values...) })
		if len(w.Input) > 0 {
			faults.Add("/input", "input is for graphs; a command has env, a URL has body")
		}
		if w.Grant != "" {
			faults.Add("/grant", "grant is for graphs; what run says needs none")
		}
	case w.Graph == "":
		faults.Add("/graph", "graph is missing, or run: what is to run")
	case work.Is(w.Graph):
		faults.Add("/graph", "the provider %s belongs to the server; write run", work.Provider)
	default:
		if _, _, err := contract.ParseGraphID(w.Graph); err != nil {
			faults.Add("/graph", "%s", messageOf(err))
		}
	}
	if w.Missed != nil {
		within(faults, "/missed/within", w.Missed.Within)
	}
	if w.Retry != nil {
		within(faults, "/retry/within", w.Retry.Within)
	}
}

func within(faults *definition.Faults, pointer string, text definition.Scalar) {
	if text == "" {
		return
	}
	if _, err := when.ParseInterval(string(text)); err != nil {
		faults.Add(pointer, "%s", messageOf(err))
	}
}

func (w *writtenRun) request() *client.PlainRun {
	if w == nil {
		return nil
	}
	r := &client.PlainRun{
		Dir: w.Dir, Env: texts(w.Env), URL: w.URL, Method: w.Method, Headers: texts(w.Headers), Body: w.Body, Timeout: string(w.Timeout),
	}
	if w.Command != nil {
		r.Command = []string{}
	}
	for _, part := range w.Command {
		r.Command = append(r.Command, string(part))
	}
	if w.Job != nil {
		r.Job = &client.PlainJob{Task: w.Job.Task, Payload: w.Job.Payload, Lane: w.Job.Lane}
	}
	return r
}

func texts(from map[string]definition.Scalar) map[string]string {
	if from == nil {
		return nil
	}
	to := make(map[string]string, len(from))
	for name, value := range from {
		to[name] = string(value)
	}
	return to
}

func (w *writtenMissed) request() *client.Missed {
	if w == nil {
		return nil
	}
	return &client.Missed{Policy: w.Policy, Within: string(w.Within)}
}

func (w *writtenRetry) request() *client.Retry {
	if w == nil {
		return nil
	}
	return &client.Retry{Attempts: w.Attempts, Within: string(w.Within)}
}
