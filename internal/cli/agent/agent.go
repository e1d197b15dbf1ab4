// Package agent lets programs that speak MCP operate Pawl: it offers routes of
// the API as tools. What a tool may do is what the token may do, and only tools
// that the token may use are offered; those that change something only when they
// were asked for.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// API is the server that the tools speak of; *client.Client is one.
type API interface {
	GetWith(ctx context.Context, path string, query url.Values) (json.RawMessage, error)
	Post(ctx context.Context, path string, body any) (json.RawMessage, error)
}

// argument is something that a tool takes. One whose name is in the path of its
// tool goes there, others to the query of a read or to the body of a write.
type argument struct {
	name, about string
	required    bool
	any         bool // any JSON value, not only a text
}

// tool is one route of the API.
type tool struct {
	name, about string
	path        string // {name} is replaced by the argument
	writes      bool
	destroys    bool // what it does cannot be undone
	arguments   []argument
}

func text(name, about string) argument { return argument{name: name, about: about} }
func need(name, about string) argument { return argument{name: name, about: about, required: true} }

// tools are all there are.
func tools() []tool {
	kind := need("kind", "workflow, source or schedule")
	limit, cursor := text("limit", "how many, at most 100"), text("cursor", "nextCursor of the page before")
	run := need("id", "id of the run")
	return []tool{
		{name: "list_lanes", about: "List every workflow, source and schedule with its status, what is the matter, and when it runs next.", path: "/api/v1/lanes", arguments: []argument{limit, cursor}},
		{name: "why", about: "Tell why a workflow, source or schedule runs, does not run, or waits.", path: "/api/v1/lanes/{kind}/{name}/why", arguments: []argument{kind, need("name", "its name"), text("at", "an instant, to ask what was then")}},
		{name: "list_runs", about: "List runs, the newest first.", path: "/api/v1/runs", arguments: []argument{text("kind", "workflow, source or schedule"), text("lane", "the name of the workflow, source or schedule"), text("status", "such as active, failed:logic or paused:approval"), limit, cursor}},
		{name: "get_run", about: "Show a run with its whole retry chain, its call and its logs.", path: "/api/v1/runs/{id}", arguments: []argument{run}},
		{name: "get_workflow", about: "Show a workflow with its script.", path: "/api/v1/workflows/{name}", arguments: []argument{need("name", "its name")}},
		{name: "list_inputs", about: "List what a workflow found outside, with what it did about it.", path: "/api/v1/workflows/{name}/inputs", arguments: []argument{need("name", "its name"), limit, cursor}},
		{name: "get_source", about: "Show a source: definition, freshness, progress, limits.", path: "/api/v1/sources/{name}", arguments: []argument{need("name", "its name")}},
		{name: "list_rows", about: "List rows that a source fetched, the newest first.", path: "/api/v1/sources/{name}/rows", arguments: []argument{need("name", "its name"), limit, cursor}},
		{name: "list_slots", about: "List the slots of a schedule with their outcomes.", path: "/api/v1/schedules/{id}/slots", arguments: []argument{need("id", "id of the schedule"), limit, cursor}},
		{name: "list_approvals", about: "List calls that wait for the approval of a person.", path: "/api/v1/approvals", arguments: []argument{limit, cursor}},

		{name: "run_now", about: "Run a workflow or a source now. It is refused with the reason while that cannot be.", path: "/api/v1/{kind}s/{name}/run", writes: true, arguments: []argument{need("kind", "workflow or source"), need("name", "its name")}},
		{name: "pause", about: "Pause a workflow or a source: nothing more is started. What was said of a pause before is replaced.", path: "/api/v1/{kind}s/{name}/pause", writes: true, arguments: []argument{
			need("kind", "workflow or source"), need("name", "its name"), text("until", "when it continues by itself: a time, or a duration such as 2h; without, when somebody resumes it"), text("note", "why, for people"),
		}},
		{name: "resume", about: "Resume a workflow or a source that is paused or halted.", path: "/api/v1/{kind}s/{name}/resume", writes: true, arguments: []argument{need("kind", "workflow or source"), need("name", "its name")}},
		{name: "publish_event", about: "Give a workflow an event.", path: "/api/v1/workflows/{name}/events", writes: true, arguments: []argument{need("name", "the workflow"), need("topic", "its topic"), need("messageId", "unique in the topic"), {name: "payload", about: "what it carries", any: true}}},
		{name: "approve_run", about: "Approve the call that a run waits to make. Read it first: it will be made.", path: "/api/v1/runs/{id}/approve", writes: true, destroys: true, arguments: []argument{run, text("hash", "of the call that was read, so that nothing else is approved")}},
		{name: "reject_run", about: "Reject the call that a run waits to make; the run ends for good.", path: "/api/v1/runs/{id}/reject", writes: true, destroys: true, arguments: []argument{run}},
		{name: "resolve_run", about: "Record the outcome of a call whose outcome is unknown.", path: "/api/v1/runs/{id}/resolve", writes: true, destroys: true, arguments: []argument{run, need("outcome", "happened, did-not-happen, skip or try-again"), {name: "result", about: "of a call that happened", any: true}}},
		{name: "cancel_run", about: "End a run for good.", path: "/api/v1/runs/{id}/cancel", writes: true, destroys: true, arguments: []argument{run}},
	}
}

// Routes asks the server what the token may use.
func Routes(ctx context.Context, api API) ([]string, error) {
	raw, err := api.GetWith(ctx, "/api/v1/tokens/current", nil)
	if err != nil {
		return nil, err
	}
	var token struct{ Routes []string }
	if err := json.Unmarshal(raw, &token); err != nil {
		return nil, fmt.Errorf("read what the token may do: %w", err)
	}
	return token.Routes, nil
}

// New makes the MCP server, with the tools whose routes the token may use.
// Without write it offers reads only.
func New(api API, version string, routes []string, write bool) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "pawl", Title: "Pawl", Version: version}, &mcp.ServerOptions{
		Instructions: "Pawl runs whatever must run later: workflows, sources and schedules. Begin with list_lanes; ask why about what needs attention.",
	})
	for _, t := range tools() {
		if t.writes && !write || !slices.ContainsFunc(routes, t.uses) {
			continue
		}
		yes, destroys := true, t.destroys
		server.AddTool(&mcp.Tool{
			Name: t.name, Description: t.about, InputSchema: t.schema(),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.writes, DestructiveHint: &destroys, OpenWorldHint: &yes},
		}, t.handler(api))
	}
	return server
}

// uses reports whether a route, such as GET /api/v1/runs/{id}, is one that the
// tool calls. A tool for several kinds calls that of any of them.
func (t tool) uses(route string) bool {
	method := "GET"
	if t.writes {
		method = "POST"
	}
	was, path, _ := strings.Cut(route, " ")
	mine, theirs := strings.Split(t.path, "/"), strings.Split(path, "/")
	return was == method && slices.EqualFunc(mine, theirs, func(a, b string) bool {
		return a == b || strings.HasPrefix(a, "{") && strings.HasPrefix(b, "{") || a == "{kind}s" && (b == "workflows" || b == "sources")
	})
}

func (t tool) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, a := range t.arguments {
		property := &jsonschema.Schema{Description: a.about}
		if !a.any {
			property.Type = "string"
		}
		s.Properties[a.name] = property
		if a.required {
			s.Required = append(s.Required, a.name)
		}
	}
	return s
}

// handler calls the route. A refusal is told as the result of the tool, so that
// the program can read what to do.
func (t tool) handler(api API) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		path, rest, err := t.place(req.Params.Arguments)
		if err != nil {
			return refused(err), nil
		}
		var raw json.RawMessage
		if t.writes {
			raw, err = api.Post(ctx, path, rest)
		} else {
			raw, err = api.GetWith(ctx, path, queryOf(rest))
		}
		if err != nil {
			return refused(err), nil
		}
		if len(raw) == 0 {
			raw = json.RawMessage(`{"ok":true}`)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: visible.Text(string(raw))}}}, nil // JSON of the same values
	}
}

// place puts arguments into the path and returns the others.
func (t tool) place(given json.RawMessage) (path string, rest map[string]json.RawMessage, err error) {
	if len(given) > 0 {
		if err := json.Unmarshal(given, &rest); err != nil {
			return "", nil, fmt.Errorf("read arguments: %w", err)
		}
	}
	path = t.path
	for _, a := range t.arguments {
		hole := "{" + a.name + "}"
		value, there := rest[a.name]
		if a.required && !there {
			return "", nil, fmt.Errorf("%s is missing: %s", a.name, a.about)
		}
		if !strings.Contains(path, hole) {
			continue
		}
		var word string
		if err := json.Unmarshal(value, &word); err != nil || word == "" {
			return "", nil, fmt.Errorf("%s must be a text: %s", a.name, a.about)
		}
		path = strings.ReplaceAll(path, hole, url.PathEscape(word))
		delete(rest, a.name)
	}
	return path, rest, nil
}

func queryOf(rest map[string]json.RawMessage) url.Values {
	query := url.Values{}
	for name, value := range rest {
		var word string
		if json.Unmarshal(value, &word) == nil && word != "" {
			query.Set(name, word)
		}
	}
	return query
}

func refused(err error) *mcp.CallToolResult {
	message := err.Error()
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Hint != "" {
		message += " " + e.Hint
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: visible.Text(message)}}}
}
