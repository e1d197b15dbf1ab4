package execution

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// commands are found by any name.
type commands struct{ *fake }

func (c commands) Lookup(string) (runner.Executor, string, error) { return c.fake, "command", nil }

// A command needs no grant, and nobody but a slot can bring one: neither a guest
// nor a connection, whatever their grants allow. What it has written is there while
// it runs, and stays if its end is not known.
func TestOnlySlotsRunCommands(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.s.graphs = commands{k.fake}
		all := k.grant(grant.Caps{}, "x:poet", work.Command)
		input := json.RawMessage(`{"command":["id"]}`)
		for name, req := range map[string]contract.RunRequestV1{
			"without a grant": {Input: input}, "with a grant": {Input: input, ExecutionGrantID: all.ID},
			"a guest": (Guest{UserID: "u", Actor: "eve"}).clean(contract.RunRequestV1{Input: input, ExecutionGrantID: all.ID, ScheduleID: "s", Idempotent: true}),
		} {
			if _, err := k.s.Run(t.Context(), "k-"+name[:1], work.Command, req); !errors.Is(err, pawl.ErrNotFound) || len(k.fake.asked()) != 0 {
				t.Errorf("%s: %v, %d runs", name, err, len(k.fake.asked()))
			}
		}
		shown := json.RawMessage(`{"stdout":"half way"}`)
		died := errors.New("the process died")
		k.fake.run = func(_ context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if err := emit(runner.Event{Kind: runner.KindOutput, Output: shown}); err != nil {
				return runner.Result{}, err
			}
			return runner.Result{}, died
		}
		slot := contract.RunRequestV1{Input: input, ScheduleID: "s", RunID: "r", Attempt: 1, Schedule: "nightly", Timezone: "UTC", Idempotent: true, Retries: true, Asked: true}
		if _, err := k.s.Run(t.Context(), "s:at", work.Command, slot); err == nil {
			t.Error("its end is known")
		}
		if r := k.fake.asked()[0]; r.Schedule != "nightly" || r.Timezone != "UTC" || !r.Idempotent || !r.Retries || !r.Asked {
			t.Errorf("%+v", r)
		}
		output := func() string {
			var out map[string]json.RawMessage
			k.write(func(ctx context.Context, tx *store.Tx) (err error) {
				out, err = executionstore.In(tx).PlainOutputs(ctx, []string{"s:at", "other"})
				return err
			})
			return string(out["s:at"])
		}
		if got := output(); got != string(shown) {
			t.Errorf("%s is shown", got)
		}
		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			return runner.Unknown("its end was not seen"), nil
		}
		answer, err := k.s.Run(t.Context(), "s:at", work.Command, slot)
		if err != nil || !answer.Unknown || output() != string(shown) {
			t.Errorf("%+v %v, %s is kept", answer, err, output())
		}
		// Nothing follows it but what a person asks for, also with another command.
		k.fake.run = succeed
		slot.Attempt, slot.Input = 2, json.RawMessage(`{"command":["id","-u"]}`)
		if _, err := k.s.Run(t.Context(), "s:at", work.Command, slot); err == nil || len(k.fake.asked()) != 2 {
			t.Errorf("%v, %d runs", err, len(k.fake.asked()))
		}
		k.write(func(ctx context.Context, tx *store.Tx) error { return Reopen(ctx, tx, "s:at") })
		if answer, err := k.s.Run(t.Context(), "s:at", work.Command, slot); err != nil || !answer.OK || answer.Attempt != 2 {
			t.Errorf("%+v %v", answer, err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error { return Reopen(ctx, tx, "s:at") }) // it succeeded: nothing is opened
		slot.Attempt = 3
		if answer, err := k.s.Run(t.Context(), "s:at", work.Command, slot); err != nil || answer.Attempt != 2 || len(k.fake.asked()) != 3 {
			t.Errorf("%+v %v", answer, err)
		}
	})
}
