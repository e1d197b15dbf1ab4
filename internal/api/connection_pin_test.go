package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// pinnedDesk is a connection whose methods are pinned.
type pinnedDesk struct {
	*desk
	pins []tool.Pin
	err  error
}

func (c *pinnedDesk) Pins(context.Context) ([]tool.Pin, error) { return slices.Clone(c.pins), c.err }

func (c *pinnedDesk) Blocked() []tool.Pin {
	return slices.DeleteFunc(slices.Clone(c.pins), func(p tool.Pin) bool { return p.State == tool.PinHolds })
}

func (c *pinnedDesk) Pin(_ context.Context, methods []string, seen map[string]string) error {
	for i, p := range c.pins {
		if !slices.Contains(methods, p.Method) {
			continue
		}
		switch {
		case p.Fixed:
			return &pawl.Error{Code: pawl.CodeInvalid, Reason: "fixed", Msg: "the pin is in the definition", Hint: "Write pin: x there."}
		case seen[p.Method] != p.Now:
			return &pawl.Error{Code: pawl.CodeConflict, Reason: "changed", Msg: "it is not the one you saw"}
		}
		c.pins[i].Pinned, c.pins[i].State, c.pins[i].Change = p.Now, tool.PinHolds, ""
	}
	return nil
}

// pinned gives a rig a connection with pins, and one without.
func pinned(t *testing.T, r *rig) *pinnedDesk {
	t.Helper()
	c := &pinnedDesk{desk: r.desk, pins: []tool.Pin{
		{Method: "fix", State: "changed", Pinned: "f0", Now: "f1", Fixed: true}, {Method: "get", State: tool.PinHolds, Pinned: "g", Now: "g"},
		{Method: "look", State: "changed", Pinned: "l0", Now: "l1", Change: "the description was \"a\" and is \"b\"", Mutation: true}, {Method: "news", State: "new", Now: "n1"},
	}}
	r.api.tools = mustSet(t, tool.Named{Name: "box", Type: "mcp", Connection: c}, tool.Named{Name: "shop", Type: "http", Connection: r.desk})
	return c
}

// What an MCP server has changed is told, and blocked until somebody agrees.
func TestPinsAreToldAndAgreedTo(t *testing.T) {
	both(t, func(r *rig) {
		pinned(t, r)
		list := pages[client.Pin](r, "/api/v1/connections/box/pins?limit=2")
		if len(list) != 4 || list[2].Method != "look" || list[2].State != "changed" || string(list[2].Pinned) != "l0" || string(list[2].Now) != "l1" || list[2].Class != "mutation" || list[2].Change == "" ||
			!list[0].Fixed || list[1].State != "pinned" || list[3].Pinned != "" {
			t.Errorf("%+v", list)
		}
		var one client.Connection
		r.do("GET", "/api/v1/connections/box", nil).want(200).into(&one)
		want := []client.BlockedMethod{{Name: "fix", Why: "It is not what was pinned."}, {Name: "look", Why: `The description was "a" and is "b".`}, {Name: "news", Why: "It was never pinned."}}
		if diff := cmp.Diff(want, one.Blocked); diff != "" {
			t.Errorf("blocked: %s", diff)
		}
		var out struct{ Pinned, Blocked []string }
		r.do("POST", "/api/v1/connections/box/pins", `{"methods":["look","get"],"seen":{"look":"l1"}}`).want(200).into(&out)
		if diff := cmp.Diff([][]string{{"look"}, {"fix", "news"}}, [][]string{out.Pinned, out.Blocked}); diff != "" {
			t.Error(diff)
		}
		if e := r.audited("connection.pin", "connection:box"); string(e.Detail) != `{"look":{"was":"l0","is":"l1"}}` {
			t.Errorf("%s", e.Detail)
		}
		r.do("POST", "/api/v1/connections/box/pins", `{"methods":["look"]}`).want(200).into(&out) // again
		if n := r.entries("connection.pin"); n != 1 || len(out.Pinned) != 0 {
			t.Errorf("%d entries, pinned %v", n, out.Pinned)
		}
	})
}

func TestPinsAreRefusedWithAReason(t *testing.T) {
	both(t, func(r *rig) {
		c := pinned(t, r)
		const path = "/api/v1/connections/box/pins"
		for body, want := range map[string]struct {
			status int
			code   string
		}{
			`{"methods":["news"],"seen":{"news":"n0"}}`: {409, "changed"},
			`{"methods":["fix"]}`:                       {422, "fixed"},
			`{"methods":[]}`:                            {422, "invalid"},
			`{}`:                                        {422, "invalid"},
		} {
			if p := r.do("POST", path, body).problem(want.status, want.code); p.Detail == "" {
				t.Errorf("%s: %+v", body, p)
			}
		}
		for _, method := range []string{"GET", "POST"} {
			if p := r.do(method, "/api/v1/connections/shop/pins", bodyFor(method)).problem(409, "nothing_to_pin"); !strings.Contains(p.Hint, "of the type http") {
				t.Errorf("%+v", p)
			}
			if p := r.do(method, "/api/v1/connections/bos/pins", bodyFor(method)).problem(404, "not_found"); !strings.Contains(p.Hint, "box") {
				t.Errorf("%+v", p)
			}
		}
		vera := r.token("vera", userstore.RoleViewer, "*")
		r.as(vera, "GET", path, nil).want(200)
		r.as(vera, "POST", path, `{"methods":["news"]}`).problem(403, "forbidden")
		r.as(r.token("otto", userstore.RoleOperator, "connections:write"), "POST", path, `{"methods":["news"]}`).want(200)

		c.err = &tool.Error{Class: pawl.ClassTransient, Code: "down", Msg: "nobody is there", Hint: "knock", Err: errors.New("inner words")}
		for _, method := range []string{"GET", "POST"} {
			if p := r.do(method, path, bodyFor(method)).problem(503, "unavailable"); p.Detail != "Nobody is there." || p.Hint != "Knock." {
				t.Errorf("%+v", p)
			}
		}
	})
}

// bodyFor is a body where a method needs one.
func bodyFor(method string) any {
	if method == "POST" {
		return `{"methods":["news"]}`
	}
	return nil
}
