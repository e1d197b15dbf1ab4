package sourcetool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func open(t *testing.T, text string, env connector.Env) (connector.Connection, []pawl.Field) {
	t.Helper()
	doc, err := definition.ReadSettings("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := connector.NewSettings(doc, env)
	c, ok := New(s)
	s.Unknown()
	if ok != (len(s.Fields()) == 0) {
		t.Errorf("ok %v with the faults %v", ok, s.Fields())
	}
	return c, s.Fields()
}

// A script reads rows of the sources that its connection names, and of no
// others; what it asks for is bounded.
func TestRowsOfNamedSourcesAreRead(t *testing.T) {
	var asked string
	env := connector.Env{Rows: func(_ context.Context, source, cursor string, limit int) ([]map[string]any, string, error) {
		asked = source
		if source == "gone" {
			return nil, "", &pawl.Error{Code: pawl.CodeNotFound, Msg: "no"}
		}
		return []map[string]any{{"id": cursor, "n": limit}}, "next", nil
	}}
	c, faults := open(t, "type: source\nsources: [prices, gone]\n", env)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	call := func(args string) (string, error) {
		out, err := c.Call(t.Context(), connector.Call{Method: "rows", Args: json.RawMessage(args)})
		return string(out), err
	}
	got, err := call(`{"source":"prices","limit":5,"cursor":"c"}`)
	if err != nil || got != `{"nextCursor":"next","rows":[{"id":"c","n":5}]}` || asked != "prices" {
		t.Errorf("it read %s of %s, %v", got, asked, err)
	}
	for args, want := range map[string]pawl.Class{
		`{"source":"other"}`:               pawl.ClassPermission,
		`{"source":"gone"}`:                pawl.ClassPrecondition,
		`{}`:                               pawl.ClassLogic,
		`{"source":"prices","limit":5000}`: pawl.ClassLogic,
		`{"table":"users"}`:                pawl.ClassLogic,
	} {
		_, err := call(args)
		if e, ok := errors.AsType[*connector.Error](err); !ok || e.Class != want {
			t.Errorf("%s: %v, want the class %s", args, err, want)
		}
	}
}

func TestADefinitionIsChecked(t *testing.T) {
	if _, faults := open(t, "type: source\nsources: prices\n", connector.Env{CheckOnly: true}); len(faults) != 1 || !strings.Contains(faults[0].String(), "x.yaml:2") {
		t.Errorf("the faults are %v", faults)
	}
	if _, faults := open(t, "type: source\n", connector.Env{}); len(faults) != 1 {
		t.Errorf("without a store the faults are %v", faults)
	}
}
