package workflowtool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// board is a store that takes down what is published, and fails when told.
type board struct {
	got  []string
	fail error
}

func (b *board) publish(_ context.Context, workflow, topic, id string, payload json.RawMessage, key string) (json.RawMessage, error) {
	b.got = append(b.got, strings.Join([]string{workflow, topic, id, string(payload), key}, " "))
	return json.RawMessage(`{"messageId":"` + id + `"}`), b.fail
}

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

func connect(t *testing.T, b *board) connector.Connection {
	t.Helper()
	c, faults := open(t, "workflow: shipping\n", connector.Env{Publish: b.publish})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return c
}

func call(args string) connector.Call {
	return connector.Call{Method: "publish", Key: "k1", Args: json.RawMessage(args)}
}

const order = `{"topic":"orders","messageId":"o-1","payload":{"n":1}}`

// context 3.1.3, 3.6.1: publishing is idempotent by message id, so asking what
// became of it is to publish again.
func TestPublishAndReconcilePublish(t *testing.T) {
	b := &board{}
	c := connect(t, b)
	if diff := cmp.Diff([]connector.Method{{Name: "publish", Mutation: true, Reconciles: true}}, c.Methods()); diff != "" {
		t.Error(diff)
	}
	result, err := c.Call(t.Context(), call(order))
	if err != nil || string(result) != `{"messageId":"o-1"}` {
		t.Errorf("Call = %s, %v", result, err)
	}
	answer, err := c.Reconcile(t.Context(), call(order))
	if err != nil || answer.State != connector.Applied || string(answer.Result) != `{"messageId":"o-1"}` {
		t.Errorf("Reconcile = %+v, %v", answer, err)
	}
	if _, err := c.Call(t.Context(), call(`{"topic":"t","messageId":"m"}`)); err != nil {
		t.Error(err)
	}
	want := []string{`shipping orders o-1 {"n":1} k1`, `shipping orders o-1 {"n":1} k1`, "shipping t m null k1"}
	if diff := cmp.Diff(want, b.got); diff != "" {
		t.Error(diff)
	}
}

func TestBadArgumentsAreNotPublished(t *testing.T) {
	b := &board{}
	c := connect(t, b)
	for args, fault := range map[string]string{
		``:                                    "topic is missing",
		`{"topic":"t"}`:                       "messageId is missing",
		`{"topic":"","messageId":"m"}`:        "topic is missing",
		`{"topic":"t","messageId":7}`:         "messageId cannot be a JSON number",
		`{"topic":"t","messageId":"m\u0000"}`: "messageId must have",
		`{"topic":"t","messageId":"m","inputId":1}`:                              `unknown argument "inputId"`,
		`{"topic":"` + strings.Repeat("t", longestName+1) + `","messageId":"m"}`: "topic must have",
	} {
		_, err := c.Call(t.Context(), call(args))
		if e, ok := errors.AsType[*connector.Error](err); !ok || e.Class != pawl.ClassLogic || !e.NotApplied || !strings.HasPrefix(e.Msg, fault) {
			t.Errorf("%.60s: %v, want %s", args, err, fault)
		}
	}
	if _, err := c.Call(t.Context(), connector.Call{Method: "peek"}); err == nil {
		t.Error("there is another method")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Call(ctx, call(order))
	if e, ok := errors.AsType[*connector.Error](err); !ok || e.Class != pawl.ClassTransient || !e.NotApplied {
		t.Errorf("after the end: %v", err)
	}
	if len(b.got) != 0 {
		t.Errorf("published %q", b.got)
	}
}

// context 3.5.7: only what the store refused outright did not happen.
func TestFaultsOfTheStoreHaveTheirClass(t *testing.T) {
	for code, want := range map[pawl.Code]struct {
		class      pawl.Class
		notApplied bool
	}{
		pawl.CodeNotFound: {pawl.ClassPrecondition, true}, pawl.CodeConflict: {pawl.ClassPrecondition, true},
		pawl.CodeInvalid: {pawl.ClassLogic, true}, pawl.CodeTooLarge: {pawl.ClassLogic, true},
		pawl.CodeUnavailable: {pawl.ClassIndeterminate, false}, pawl.CodeInternal: {pawl.ClassInternal, false},
	} {
		c := connect(t, &board{fail: &pawl.Error{Code: code, Msg: "no"}})
		_, err := c.Call(t.Context(), call(order))
		if e, ok := errors.AsType[*connector.Error](err); !ok || e.Class != want.class || e.NotApplied != want.notApplied || e.Msg != `publish to the workflow "shipping": no` {
			t.Errorf("%s: %+v", code, e)
		}
		answer, err := c.Reconcile(t.Context(), call(order))
		if e, ok := errors.AsType[*connector.Error](err); !ok || e.NotApplied || answer.State != "" {
			t.Errorf("%s: Reconcile = %+v, %v", code, answer, err)
		}
	}
	own := &connector.Error{Class: pawl.ClassAuth, Code: "x"}
	if _, err := connect(t, &board{fail: own}).Call(t.Context(), call(order)); !errors.Is(err, own) {
		t.Errorf("an error with a class of its own became %v", err)
	}
	_, err := connect(t, &board{fail: errors.New("bad luck")}).Call(t.Context(), call(order))
	if e, ok := errors.AsType[*connector.Error](err); !ok || e.Class != pawl.ClassInternal || e.NotApplied || strings.Contains(e.Msg, "luck") {
		t.Errorf("an error without a class became %+v", e)
	}
}

func TestDefinitionNamesAWorkflowThatCanBeReached(t *testing.T) {
	if _, faults := open(t, "workflow: shipping\n", connector.Env{}); len(faults) != 1 || !strings.HasPrefix(faults[0].String(), `x.yaml:1:11: the workflow "shipping" cannot be reached`) {
		t.Errorf("without a store: %v", faults)
	}
	if _, faults := open(t, "workflow: shipping\n", connector.Env{CheckOnly: true}); len(faults) != 0 {
		t.Errorf("only looked at: %v", faults)
	}
	if _, faults := open(t, "workflow: [a]\n", connector.Env{CheckOnly: true}); len(faults) != 1 {
		t.Errorf("a list: %v", faults)
	}
}
