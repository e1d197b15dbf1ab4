package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newEnqueueCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "enqueue TASK [URL] | enqueue --file FILE", Short: "Enqueue jobs, to run now or later",
		Long: "Enqueues a job. The http task sends a request to URL; the log task writes --message to the\n" +
			"server's log. For other tasks, or for options without a flag, pass the payload as JSON.\n\n" +
			"With --file it enqueues many: each line of the file is a job as POST /api/v1/jobs takes it. Up\n" +
			"to 10,000 lines or 8 MiB are enqueued together, or not at all; longer files in such parts.",
		Example: "  pawl enqueue http https://example.com/hook --in 10s\n" +
			"  pawl enqueue http https://example.com/orders --method POST --body '{\"id\": 7}' --header 'X-Team: shop'\n" +
			"  pawl enqueue log --message hello --at 2030-01-31T09:00:00Z\n" +
			"  pawl enqueue log --payload '{\"message\": \"hello\"}' --key greeting --lane greetings\n" +
			"  pawl enqueue send-email --payload '{\"to\": \"ada@example.com\"}' --wait\n" +
			"  pawl enqueue --file jobs.jsonl\n" +
			"  echo '{\"task\": \"log\", \"payload\": {\"message\": \"hello\"}}' | pawl enqueue --file -",
		GroupID: groupChange, ValidArgsFunction: cobra.NoFileCompletions,
	}
	e := &enqueuer{p: p, flags: addSettingFlags(cmd, forClient), out: addOutputFlag(cmd, formatTable, formatJSON, formatYAML)}
	f := cmd.Flags()
	f.StringVar(&e.file, "file", "", "enqueue the jobs in `FILE`, one JSON object in each line; - is stdin")
	f.StringVar(&e.payload, "payload", "", "payload of the task: `JSON`, @FILE, or - for stdin")
	f.StringVar(&e.message, "message", "", "log task: the `TEXT` to write")
	f.StringVar(&e.method, "method", "", "http task: the request `METHOD` (default POST)")
	f.StringArrayVar(&e.headers, "header", nil, "http task: a request header, as `NAME: VALUE` (repeatable)")
	f.StringVar(&e.body, "body", "", "http task: the request body, as `JSON`, @FILE, or - for stdin")
	f.StringVar(&e.in, "in", "", "run the job after `TIME`, such as 90s, 5m, 1h30m or 7d")
	f.StringVar(&e.at, "at", "", "run the job at `TIME`, such as 2030-01-31T09:00:00Z")
	f.StringVar(&e.lane, "lane", "", "run jobs of the same `LANE` one at a time, in order")
	f.StringVar(&e.key, "key", "", "allow at most one waiting job with this `KEY`")
	f.StringVar(&e.keyMode, "key-mode", "", "what to do if a job with the key is waiting: `MODE` replace, preserve_run_at or keep")
	f.IntVar(&e.priority, "priority", 0, "priority; higher values run first")
	f.IntVar(&e.attempts, "max-attempts", 0, "try the job at most `N` times (default set by the task)")
	f.BoolVar(&e.wait, "wait", false, "wait until the job has ended, and show its result; exit code 1 if it failed")
	f.StringVar(&e.once, "idempotency-key", "", "enqueue only once for the same `KEY`, however often the command runs")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if e.file != "" {
			return takes(0, 0)(cmd, args)
		}
		return takes(1, 2)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if e.file != "" {
			return e.runFile(cmd)
		}
		return e.run(cmd, args)
	}
	return cmd
}

// enqueuer is one call of enqueue.
type enqueuer struct {
	p     *Process
	flags *settingFlags
	out   *outputFlag

	file               string
	payload, message   string
	method, body       string
	headers            []string
	in, at             string
	lane, key, keyMode string
	priority, attempts int
	once               string
	wait               bool
}

func (e *enqueuer) run(cmd *cobra.Command, args []string) error {
	spec, err := e.spec(args, time.Now())
	if err != nil {
		return err
	}
	c, err := e.flags.connect(e.p)
	if err != nil {
		return err
	}
	defer c.Close()
	raw, err := c.Send(cmd.Context(), client.Request{Method: http.MethodPost, Path: client.JobsPath, Header: onceHeader(e.once), Body: spec})
	if err != nil {
		return err
	}
	var j client.Job
	if err := json.Unmarshal(raw, &j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if e.wait {
		return e.await(cmd.Context(), c, j)
	}
	if e.out.machine() {
		return writeMachine(e.p.Stdout, e.out.format, raw)
	}
	if _, err := fmt.Fprintf(e.p.Stdout, "job %s runs %s\n", j.ID, relative(j.RunAt.Time, time.Now())); err != nil {
		return err
	}
	e.p.say("Watch it with: pawl get job %s -w", j.ID)
	return nil
}

// await waits for the end of a job and shows what came of it.
func (e *enqueuer) await(ctx context.Context, c *client.Client, j client.Job) error {
	if !e.out.machine() {
		e.p.say("job %s runs %s", j.ID, relative(j.RunAt.Time, time.Now()))
	}
	j, err := c.AwaitJob(ctx, j.ID)
	if err != nil {
		return err
	}
	if e.out.machine() {
		raw, err := json.Marshal(j)
		if err != nil {
			return fmt.Errorf("write job: %w", err)
		}
		if err := writeMachine(e.p.Stdout, e.out.format, raw); err != nil {
			return err
		}
	} else if j.State == client.JobSucceeded {
		text := "job " + j.ID + " succeeded"
		if len(j.Result) > 0 && string(j.Result) != "null" {
			text = string(j.Result)
		}
		if _, err := fmt.Fprintln(e.p.Stdout, text); err != nil {
			return err
		}
	}
	if j.State != client.JobSucceeded {
		return &pawl.Error{Code: pawl.CodeInternal, Msg: fmt.Sprintf("job %s %s", j.ID, endedWords(j)), Hint: "pawl describe job " + j.ID}
	}
	return nil
}

// endedWords says how a job ended that did not succeed.
func endedWords(j client.Job) string {
	if j.State == client.JobCancelled {
		return "was cancelled"
	}
	return "failed: " + oneLine(string(j.LastError))
}

// onceHeader is the header with a key; empty has none.
func onceHeader(key string) http.Header {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return header
}

// spec makes the request from the flags.
func (e *enqueuer) spec(args []string, now time.Time) (map[string]any, error) {
	payload, err := e.content(args)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{"task": args[0]}
	set := func(name string, value any, given bool) {
		if given {
			spec[name] = value
		}
	}
	set("payload", payload, payload != nil)
	set("lane", e.lane, e.lane != "")
	set("key", e.key, e.key != "")
	set("keyMode", e.keyMode, e.keyMode != "")
	set("priority", e.priority, e.priority != 0)
	set("maxAttempts", e.attempts, e.attempts != 0)
	set("delay", e.in, e.in != "")
	if e.at == "" {
		return spec, nil
	}
	if e.in != "" {
		return nil, usageError("Leave one of them out.", "--in and --at cannot go together")
	}
	instant, err := readInstant("--at", e.at, time.Local, now)
	spec["runAt"] = pawl.FormatTime(instant)
	return spec, err
}

// content is the payload: as it was given, or made from the flags of the task.
func (e *enqueuer) content(args []string) (any, error) {
	isHTTP := args[0] == "http"
	request := e.method != "" || e.body != "" || len(e.headers) > 0
	switch {
	case e.payload != "" && (request || e.message != "" || len(args) > 1):
		return nil, usageError("Say it in one way.", "--payload replaces the other options of the task")
	case e.payload != "":
		return readJSON(e.p, "--payload", e.payload)
	case (len(args) > 1 || request) && !isHTTP:
		return nil, usageError("Use --payload.", "only the task http takes a URL, --method, --header and --body")
	case e.message != "" && args[0] != "log":
		return nil, usageError("Use --payload.", "only the task log takes --message")
	case e.message != "":
		return map[string]any{"message": e.message}, nil
	case !isHTTP:
		return nil, nil //nolint:nilnil // a task may be told nothing
	case len(args) < 2:
		return nil, usageError("Write: pawl enqueue http https://example.com/hook", "the task http needs a URL")
	}
	payload := map[string]any{"url": args[1]}
	if e.method != "" {
		payload["method"] = strings.ToUpper(e.method)
	}
	headers := map[string]string{}
	for _, text := range e.headers {
		name, value, ok := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usageError("Write --header 'X-Team: shop'.", "--header: a header is NAME: VALUE")
		}
		headers[name] = strings.TrimSpace(value)
	}
	if len(headers) > 0 {
		payload["headers"] = headers
	}
	if e.body == "" {
		return payload, nil
	}
	body, err := readJSON(e.p, "--body", e.body)
	payload["body"] = body
	return payload, err
}
