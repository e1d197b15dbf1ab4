package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/workflow"
)

// newTestCommand tries a definition out. (Its file cannot be called after it:
// Go takes that name for a test.)
func newTestCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Test a workflow or source without changing anything",
		Long: "For a workflow, runs every producer once, and its consumers as long as they take events, in\n" +
			"memory: reads are real, but nothing outside is changed and nothing is stored. For a source,\n" +
			"in YAML, fetches the first pages and shows the rows that would be written, the requests that\n" +
			"were made, and what was rejected. No server is needed.",
		Example: "  pawl test mail.workflow.ts --connection-dir connections\n" +
			"  pawl test mail.workflow.ts --event 'mail.received={\"from\":\"ann\"}'\n" +
			"  pawl test prices.yaml --provider-dir providers --pages 3",
		GroupID: groupTools, Args: takes(1, 1),
	}
	var t trying
	cmd.Flags().StringVar(&t.connections, "connection-dir", p.Getenv("PAWL_CONNECTION_DIR"), "read connections from `FOLDER`")
	cmd.Flags().StringArrayVar(&t.events, "event", nil, "start with an event, as `TOPIC=JSON` (repeatable)")
	cmd.Flags().StringVar(&t.result, "result", "", "pass `JSON` to next as the result of the call")
	cmd.Flags().StringSliceVar(&t.private, "allow-private", splitList(p.Getenv("PAWL_ALLOW_PRIVATE"), false), "allow reads from private addresses in `CIDR`")
	cmd.Flags().StringArrayVar(&t.providers, "provider", splitList(p.Getenv("PAWL_PROVIDER"), true), "source: read a provider's keys from `FILE` (repeatable)")
	cmd.Flags().StringArrayVar(&t.providerDirs, "provider-dir", splitList(p.Getenv("PAWL_PROVIDER_DIR"), true), "source: read all providers in `DIR` (repeatable)")
	cmd.Flags().IntVar(&t.pages, "pages", 2, "source: fetch at most `N` pages")
	cmd.Flags().IntVar(&t.rows, "rows", 20, "source: show at most `N` rows")
	cmd.Flags().StringVar(&t.name, "name", "", "source: use the one with this `NAME`, if the file has several")
	t.out = addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), p, args[0]) }
	return cmd
}

// trying is one run of the command.
type trying struct {
	connections string
	events      []string
	result      string
	private     []string
	out         *outputFlag

	// Of sources.
	providers, providerDirs []string
	pages, rows             int
	name                    string
}

func (t *trying) run(ctx context.Context, p *Process, file string) error {
	if ext := filepath.Ext(file); ext == ".yaml" || ext == ".yml" {
		return t.runSource(ctx, p, file)
	}
	if ext := filepath.Ext(file); !slices.Contains([]string{".ts", ".js", ".mts", ".mjs"}, ext) {
		return usageError("Workflows are in *.workflow.ts and *.workflow.js, sources in *.yaml and *.yml.", "%s is neither a workflow nor a source", file)
	}
	source, err := os.ReadFile(p.path(file))
	if err != nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("%s cannot be read", file), Err: err}
	}
	try := workflow.Try{Filename: filepath.Base(file), Script: string(source)}
	if t.result != "" {
		if try.Result = json.RawMessage(t.result); !json.Valid(try.Result) {
			return usageError(`Such as --result '{"id":1}'.`, "--result is not JSON")
		}
	}
	if try.Events, err = parseEvents(t.events); err != nil {
		return err
	}
	allow, err := outbound.ParsePrefixes(t.private)
	if err != nil {
		return err
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: allow, UserAgent: "pawl-test"})
	if err != nil {
		return err
	}
	defer client.Close()
	if try.Tools, err = tool.Load(p.path(t.connections), tool.Env{Getenv: p.Getenv, HTTP: client}); err != nil {
		return err
	}
	pool, err := script.NewPool(script.Config{Workers: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	try.Scripts = pool
	config, tried, err := try.Run(ctx)
	if err != nil {
		return err
	}
	return t.report(p, config, tried)
}

// parseEvents reads TOPIC=JSON; the ids are numbers.
func parseEvents(list []string) (events []eventstore.NewEvent, err error) {
	for i, text := range list {
		topic, payload, ok := strings.Cut(text, "=")
		if !ok || !json.Valid([]byte(payload)) {
			return nil, usageError(`Such as --event 'mail.received={"from":"ann"}'.`, "--event %q is not TOPIC=JSON", text)
		}
		events = append(events, eventstore.NewEvent{Topic: topic, MessageID: "event-" + strconv.Itoa(i+1), Payload: json.RawMessage(payload)})
	}
	return events, nil
}

// triedJSON is what a handler did, for programs.
type triedJSON struct {
	Handler   string             `json:"handler"`
	Type      string             `json:"type"`
	Prepared  *workflow.Prepared `json:"prepared,omitempty"`
	Call      *triedCall         `json:"call,omitempty"`
	Published []triedEvent       `json:"published,omitempty"`
	Inputs    []triedInput       `json:"inputs,omitempty"`
	State     json.RawMessage    `json:"state,omitempty"`
	Logs      []string           `json:"logs,omitempty"`
	Error     string             `json:"error,omitempty"`
	Class     string             `json:"class,omitempty"`
}

type triedCall struct {
	Tool      string          `json:"tool"`
	Method    string          `json:"method"`
	Arguments json.RawMessage `json:"arguments"`
	Policy    string          `json:"policy"`
}

type triedEvent struct {
	Topic     string          `json:"topic"`
	MessageID string          `json:"messageId"`
	Payload   json.RawMessage `json:"payload"`
}

type triedInput struct {
	Source string `json:"source"`
	Type   string `json:"type"`
	ID     string `json:"id"`
	Title  string `json:"title"`
}

func triedOf(t workflow.Tried) triedJSON {
	out := triedJSON{Handler: t.Handler, Type: string(t.Type), Prepared: t.Prepared, State: t.State, Error: t.Failure, Class: string(t.Class)}
	if t.Call != nil {
		out.Call = &triedCall{t.Call.Tool, t.Call.Method, t.Call.Arguments, string(t.Call.Policy)}
	}
	for _, e := range t.Events {
		out.Published = append(out.Published, triedEvent{e.Topic, e.MessageID, e.Payload})
	}
	for _, i := range t.Inputs {
		out.Inputs = append(out.Inputs, triedInput{i.Source, i.Type, i.ExternalID, i.Title})
	}
	for _, l := range t.Logs {
		out.Logs = append(out.Logs, l.Text)
	}
	return out
}

// report tells what the handlers did; one that failed makes the command fail.
func (t *trying) report(p *Process, config workflow.Config, tried []workflow.Tried) error {
	list := make([]triedJSON, len(tried))
	failed := 0
	for i, one := range tried {
		list[i] = triedOf(one)
		if one.Failure != "" {
			failed++
		}
	}
	if t.out.machine() {
		raw, err := json.Marshal(map[string]any{"name": config.Name, "handlers": list})
		if err != nil {
			return err
		}
		if err := writeMachine(p.Stdout, t.out.format, raw); err != nil {
			return err
		}
	} else {
		var b bytes.Buffer
		fmt.Fprintf(&b, "Workflow %s, without making calls:\n", config.Name)
		for _, one := range list {
			one.writeTo(&b)
		}
		if _, err := p.Stdout.Write(b.Bytes()); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: plural(failed, "handler") + " failed"}
	}
	return nil
}

func (t triedJSON) writeTo(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s %s\n", t.Type, t.Handler)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(b, "  %-11s %s\n", what, oneLine(fmt.Sprintf(format, args...)))
	}
	if t.Prepared != nil {
		for _, r := range t.Prepared.Reservations {
			line("takes", "%s %s", r.Topic, strings.Join(r.IDs, ", "))
		}
		if t.Prepared.Reserved() == 0 {
			line("takes", "nothing")
		}
		if t.Prepared.WakeAt != "" {
			line("wakes at", "%s", t.Prepared.WakeAt)
		}
	}
	for _, i := range t.Inputs {
		line("found", "%s (%s/%s %s)", i.Title, i.Source, i.Type, i.ID)
	}
	if t.Call != nil {
		line("would call", "%s.%s %s (policy: %s)", t.Call.Tool, t.Call.Method, compactJSON(t.Call.Arguments), t.Call.Policy)
	}
	for _, e := range t.Published {
		line("publishes", "%s %s %s", e.Topic, e.MessageID, compactJSON(e.Payload))
	}
	for _, l := range t.Logs {
		line("logs", "%s", l)
	}
	if len(t.State) > 0 {
		line("remembers", "%s", compactJSON(t.State))
	}
	if t.Error != "" {
		line("FAILED", "%s (%s)", t.Error, t.Class)
	}
}
