package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	pawl "github.com/pawlrun/pawl"
)

// fake is an API that remembers what it was asked.
type fake struct {
	asked  []string
	answer string
	fail   error
}

func (f *fake) GetWith(_ context.Context, path string, query url.Values) (json.RawMessage, error) {
	f.asked = append(f.asked, "GET "+path+" "+query.Encode())
	return json.RawMessage(cmp.Or(f.answer, `{"items":[]}`)), f.fail
}

func (f *fake) Post(_ context.Context, path string, body any) (json.RawMessage, error) {
	raw, err := json.Marshal(body)
	f.asked = append(f.asked, "POST "+path+" "+string(raw))
	if f.fail != nil {
		return nil, f.fail
	}
	return nil, err
}

func connect(t *testing.T, api API, write bool) *mcp.ClientSession {
	t.Helper()
	return offer(t, api, write, everyRoute())
}

// everyRoute is what an admin may use.
func everyRoute() (routes []string) {
	for _, t := range tools() {
		method := map[bool]string{false: "GET ", true: "POST "}[t.writes]
		routes = append(routes, method+strings.Replace(t.path, "{kind}s", "workflows", 1))
	}
	return routes
}

func offer(t *testing.T, api API, write bool, routes []string) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := New(api, "test", routes, write).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func call(t *testing.T, s *mcp.ClientSession, name string, arguments map[string]any) *mcp.CallToolResult {
	t.Helper()
	out, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func TestWritesAreOnlyOfferedWhenAskedFor(t *testing.T) {
	for write, want := range map[bool]bool{false: false, true: true} {
		list, err := connect(t, &fake{}, write).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, tool := range list.Tools {
			found = found || !tool.Annotations.ReadOnlyHint
			if tool.Name == "approve_run" && (tool.Annotations.DestructiveHint == nil || !*tool.Annotations.DestructiveHint) {
				t.Error("approving is not marked as something that cannot be undone")
			}
		}
		if found != want {
			t.Errorf("with write %v, tools that change something are offered: %v", write, found)
		}
	}
}

// a tool that the token may not use is not offered; one for several kinds
// is if the token may use it for one of them.
func TestOnlyWhatTheTokenMayUseIsOffered(t *testing.T) {
	for name, c := range map[string]struct{ routes, want []string }{
		"nothing": {nil, nil},
		"lanes":   {[]string{"GET /api/v1/lanes", "GET /api/v1/lanes/{kind}/{name}/why", "POST /api/v1/lanes"}, []string{"list_lanes", "why"}},
		"sources": {[]string{"GET /api/v1/sources", "POST /api/v1/sources/{name}/run", "POST /api/v1/schedules/{id}/pause"}, []string{"run_now"}},
		"a route": {[]string{"GET /api/v1/runs/{run}"}, []string{"get_run"}},
	} {
		list, err := offer(t, &fake{}, true, c.routes).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range list.Tools {
			got = append(got, tool.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are offered, want %v", name, got, c.want)
		}
	}
}

func TestTheServerIsAskedWhatTheTokenMayUse(t *testing.T) {
	api := &fake{answer: `{"routes":["GET /api/v1/lanes"]}`}
	routes, err := Routes(t.Context(), api)
	if err != nil || !slices.Equal(routes, []string{"GET /api/v1/lanes"}) || api.asked[0] != "GET /api/v1/tokens/current " {
		t.Errorf("%v %v after %v", routes, err, api.asked)
	}
	if _, err := Routes(t.Context(), &fake{fail: &pawl.Error{Code: pawl.CodeUnauthorized}}); pawl.ErrorCode(err) != pawl.CodeUnauthorized {
		t.Errorf("%v", err)
	}
}

func TestToolsAreRoutesOfTheAPI(t *testing.T) {
	api := &fake{}
	s := connect(t, api, true)
	call(t, s, "why", map[string]any{"kind": "source", "name": "a/../b"})
	call(t, s, "list_runs", map[string]any{"lane": "mail", "limit": "5"})
	call(t, s, "publish_event", map[string]any{"name": "w", "topic": "t", "messageId": "m", "payload": map[string]any{"a": 1}})
	call(t, s, "pause", map[string]any{"kind": "workflow", "name": "w", "until": "2h", "note": "moving house"})
	want := []string{
		"GET /api/v1/lanes/source/a%2F..%2Fb/why ",
		"GET /api/v1/runs lane=mail&limit=5",
		`POST /api/v1/workflows/w/events {"messageId":"m","payload":{"a":1},"topic":"t"}`,
		`POST /api/v1/workflows/w/pause {"note":"moving house","until":"2h"}`,
	}
	if got := strings.Join(api.asked, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("asked was\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	api.fail = &pawl.Error{Code: pawl.CodeConflict, Msg: "a run is active", Hint: "Wait."}
	out := call(t, s, "run_now", map[string]any{"kind": "workflow", "name": "w"})
	if text := out.Content[0].(*mcp.TextContent).Text; !out.IsError || !strings.Contains(text, "a run is active") || !strings.Contains(text, "Wait.") {
		t.Errorf("a refusal is told as %q", text)
	}
}
