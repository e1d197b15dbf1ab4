package graphtool

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// A graph runs once for the key of a call, under the grant of the connection,
// and an outcome that nobody saw can be asked for.
func TestAGraphRunsUnderTheKeyOfTheCall(t *testing.T) {
	var asked connector.GraphCall
	var fail error
	env := connector.Env{Graph: func(_ context.Context, c connector.GraphCall) (json.RawMessage, error) {
		asked = c
		return json.RawMessage(`{"runId":"r"}`), fail
	}}
	doc, err := definition.ReadSettings("x.yaml", []byte("graph: http:poet\ngrant: g-1\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := connector.NewSettings(doc, env)
	c, ok := New(s)
	if !ok {
		t.Fatal(s.Fields())
	}
	call := connector.Call{Method: "run", Key: "k", Args: json.RawMessage(`{"input":{"a":1}}`)}
	if _, err := c.Call(t.Context(), call); err != nil || asked.Key != "k" || asked.GrantID != "g-1" || asked.GraphID != "http:poet" || string(asked.Input) != `{"a":1}` {
		t.Errorf("%+v was asked for, %v", asked, err)
	}
	answer, err := c.Reconcile(t.Context(), call)
	if err != nil || answer.State != connector.Applied || !asked.OnlyLook {
		t.Errorf("it was answered %+v, %v", answer, err)
	}
	fail = &pawl.Error{Code: pawl.CodeNotFound, Msg: "no such key"}
	if answer, err := c.Reconcile(t.Context(), call); err != nil || answer.State != connector.Absent {
		t.Errorf("a key that is not known is %+v, %v; want that it is not there", answer, err)
	}
	fail = errors.New("connection reset")
	_, err = c.Call(t.Context(), call)
	if e, ok := errors.AsType[*connector.Error](err); !ok || e.NotApplied || e.Class != pawl.ClassIndeterminate {
		t.Errorf("a call without an answer is %v, want unknown", err)
	}
	fail = &pawl.Error{Code: pawl.CodeForbidden, Reason: "grant_expired", Msg: "expired"}
	_, err = c.Call(t.Context(), call)
	if e, ok := errors.AsType[*connector.Error](err); !ok || !e.NotApplied || e.Class != pawl.ClassPermission || e.Code != "grant_expired" {
		t.Errorf("a refused grant is %v, want a permission that did not happen", err)
	}
}
