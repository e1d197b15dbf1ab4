package workflow

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// nowhere is a world in which nothing is there.
type nowhere struct{ mutations int }

func (nowhere) peek(context.Context, string, int) ([]eventstore.Event, error) { return nil, nil }
func (nowhere) byMessage(context.Context, string, []string) ([]eventstore.Event, error) {
	return nil, nil
}
func (nowhere) knownInput(context.Context, string) (bool, error) { return false, nil }
func (nowhere) lookup(_, method string) (tool.Target, error) {
	return tool.Target{Method: tool.Method{Name: method, Mutation: method == "write"}}, nil
}

func (nowhere) read(context.Context, tool.Target, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage("null"), nil
}
func (nowhere) noted(string, json.RawMessage, json.RawMessage, error) {}
func (nowhere) approved(context.Context, tool.Target, json.RawMessage) (bool, error) {
	return true, nil
}

func (n *nowhere) mutate(context.Context, tool.Target, json.RawMessage) *calledMutation {
	n.mutations++
	return &calledMutation{}
}

// FuzzHost: whatever a script sends to its host, in whatever phase, the host answers or
// aborts it, and it makes one call that changes something at most, and only in mutate.
func FuzzHost(f *testing.F) {
	for phase := range 4 {
		for _, c := range [][2]string{
			{"peek", `{"topic":"in","limit":5}`}, {"getByIds", `{"topic":"in","ids":["a"]}`}, {"tool", `{"connection":"c","method":"read","args":{}}`}, {"tool", `{"connection":"c","method":"write","args":[1]}`},
			{"publish", `{"topics":["in"],"event":{"messageId":"a","payload":1,"inputId":"x"}}`}, {"registerInput", `{"source":"a","type":"b","id":"c","title":"d"}`}, {"evil", `{}`}, {"peek", `[`}, {"publish", `{"topics":null,"event":null}`},
			{"tool", `{"connection":"c","method":"write","args":{"__proto__":{}}}`}, {"getByIds", `{"topic":"in","ids":[null]}`},
		} {
			f.Add(phase, c[0], []byte(c[1]), c[0], []byte(c[1]))
		}
	}
	f.Fuzz(func(t *testing.T, phase int, first string, one []byte, second string, two []byte) {
		r := []rules{producerRules, prepareRules, mutateRules, nextRules}[uint(phase)%4]
		w := &nowhere{}
		h := &host{rules: r, world: w, now: phaseNow(), scope: "s", createdBy: "r", publishes: []string{"in"}, subscribes: []string{"in"}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a call that aborts waits for the end of its phase
		for _, c := range []struct {
			op   string
			args []byte
		}{{first, one}, {second, two}} {
			if !json.Valid(c.args) { // the worker of a script sends JSON only; the frames have a test of their own
				continue
			}
			_, _ = h.Call(ctx, c.op, c.args)
		}
		if w.mutations > 1 || w.mutations > 0 && !r.mutate {
			t.Fatalf("%d calls in %s", w.mutations, r.phase)
		}
	})
}
