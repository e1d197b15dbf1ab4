package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// an order that is under way when its caller dies, gives up or is cut off
// is not made a second time, because the desk does not show it yet; whether the
// desk honours keys or not.
func TestACallThatIsUnderWayIsNotRepeated(t *testing.T) {
	stops := []struct {
		name  string
		takes time.Duration
		stop  func(t *testing.T, k *kit, w workflowstore.Workflow)
	}{
		{"crash", 6 * time.Second, func(_ *testing.T, k *kit, w workflowstore.Workflow) {
			k.desk.patience = time.Second // the caller dies one second into the call
			k.crashAt(w, "called", 1)
		}},
		{"slow", 8 * time.Second, func(_ *testing.T, k *kit, w workflowstore.Workflow) {
			k.desk.patience = 5 * time.Second
			k.work(w)
		}},
		{"suspend", 12 * time.Second, func(t *testing.T, k *kit, w workflowstore.Workflow) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, errors.New("the database does not answer"))
			defer cancel()
			if _, err := k.s.work(ctx, k, w.ID); err == nil {
				t.Error("the session was not cut off")
			}
			pass(2 * time.Second)
		}},
		{"slower than the default allows", 59 * time.Second, func(_ *testing.T, k *kit, w workflowstore.Workflow) {
			k.desk.patience = 20 * time.Second
			k.work(w)
		}},
	}
	inTime(t, func(t *testing.T, k *kit) {
		for i, c := range stops {
			for _, ignores := range []bool{false, true} {
				k.desk.clear()
				k.desk.takes, k.desk.patience, k.desk.ignoresKeys = c.takes, 0, ignores
				w := k.deploy(fmt.Sprintf("shop-%d-%v", i, ignores), "1", orderDefinition())
				k.publish(w, "in", "a")
				c.stop(t, k, w)
				k.settle(w)
				if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
					t.Errorf("%s, keys ignored %v: orders %v", c.name, ignores, got)
				}
				if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != pawl.MutationApplied || rows[0].ResolvedBy != "reconcile" {
					t.Errorf("%s, keys ignored %v: the rows are %+v", c.name, ignores, rows)
				}
			}
		}
	})
}

// X-69, context 3.6: "not there" means ask later until absentAfter is over,
// counted from the instant at which the call was written down and as it was
// then, whoever asks and whatever the connection says by now. Questions that
// are answered so spend nothing, and one comes at that very instant.
func TestNotThereCountsFromAnInstantThatIsKept(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var asked []time.Duration
		var begun time.Time
		calls := 0
		lost := func(absentAfter time.Duration) absentTool {
			return absentTool{absentAfter, goTool{
				call: func(context.Context, tool.Call) (json.RawMessage, error) {
					if calls++; calls > 1 {
						return json.RawMessage(`1`), nil
					}
					begun = time.Now()
					return nil, errLost
				},
				reconcile: func(context.Context, tool.Call) (tool.Answer, error) {
					asked = append(asked, time.Since(begun).Round(time.Millisecond))
					return tool.Answer{State: tool.Absent}, nil
				},
			}}
		}
		k.plug("far", lost(45*time.Minute))
		w := k.deploy("shop", "1", orderBy("far", "act"))
		k.publish(w, "in", "a")
		until := k.work(w)
		k.start("another owner")
		k.plug("far", lost(time.Second)) // the definition was changed since
		for range 100 {
			if rows := k.ledgerRows(w); rows[0].State != pawl.MutationNeedsReconcile {
				break
			}
			pass(time.Until(until))
			until = k.work(w)
		}
		s, m := time.Second, time.Minute
		want := []time.Duration{0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 640 * s, 1240 * s, 1840 * s, 2440 * s, 45 * m}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("it was asked at %v, want %v", asked, want)
		}
		k.settle(w)
		rows := k.ledgerRows(w)
		if len(rows) != 2 || rows[0].State != pawl.MutationFailed || rows[1].State != pawl.MutationApplied || rows[0].ReconcileAttempts != 0 {
			t.Fatalf("the rows are %+v", rows)
		}
		if calls != 2 || rows[0].IdempotencyKey != rows[1].IdempotencyKey {
			t.Errorf("%d calls with the keys %s and %s", calls, rows[0].IdempotencyKey, rows[1].IdempotencyKey)
		}
		if rows[1].AbsentAt.Sub(rows[1].CreatedAt) != time.Second {
			t.Errorf("the second call counts as absent after %v", rows[1].AbsentAt.Sub(rows[1].CreatedAt))
		}
	})
}

// absentTool is a goTool whose calls may be under way for so long.
type absentTool struct {
	after time.Duration
	goTool
}

func (a absentTool) Methods() []tool.Method {
	methods := a.goTool.Methods()
	for i := range methods {
		if methods[i].Reconciles {
			methods[i].AbsentAfter = a.after
		}
	}
	return methods
}

// the call that is made again has the key of the first, unless the
// other end refused that one in so many words or a person gave his word; and
// unless it is another call.
func TestWhoseKeyARepeatedCallCarries(t *testing.T) {
	var (
		unknown = errLost
		notSent = &tool.Error{Class: pawl.ClassTransient, Code: "refused", Msg: "no connection", NotApplied: true, NotSent: true}
		refused = refusal(pawl.ClassTransient)
	)
	for _, c := range []struct {
		name    string
		answers []error      // of the calls before the one that works
		state   []tool.State // of the questions; no more: absent
		person  Outcome      // what a person says when nobody else knows
		grows   bool         // another event comes before the second call, which takes both
		same    []bool       // whether the second, third, ... call has the key of the one before
	}{
		{"it was not there", []error{unknown}, nil, "", false, []bool{true}},
		{"it was not sent", []error{notSent}, nil, "", false, []bool{true}},
		{"it was not there, and the next not sent", []error{unknown, notSent, unknown}, nil, "", false, []bool{true, true, true}},
		{"it was refused", []error{refused}, nil, "", false, []bool{false}},
		{"it was not there, and the next refused", []error{unknown, refused}, nil, "", false, []bool{true, false}},
		{"the key was withdrawn", []error{unknown}, []tool.State{tool.NotApplied}, "", false, []bool{false}},
		{"a person says so", []error{unknown}, later(6), DidNotHappen, false, []bool{false}},
		{"a person lets ask again", []error{unknown}, later(6), TryAgain, false, []bool{true}},
		{"the next one is for other events", []error{unknown}, nil, "", true, []bool{false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				answers, states := c.answers, c.state
				k.plug("far", goTool{
					call: func(context.Context, tool.Call) (json.RawMessage, error) {
						if len(answers) == 0 {
							return json.RawMessage(`1`), nil
						}
						err := answers[0]
						answers = answers[1:]
						return nil, err
					},
					reconcile: func(context.Context, tool.Call) (tool.Answer, error) {
						if len(states) == 0 {
							return tool.Answer{State: tool.Absent}, nil
						}
						state := states[0]
						states = states[1:]
						return tool.Answer{State: state}, nil
					},
				})
				w := k.deploy("shop", "1", orderBy("far", "act").with(map[string]goHandler{"consumers.order.prepare": func(c *goCtx, _ []json.RawMessage) any {
					return take("in", c.peek("in")...)
				}}))
				k.publish(w, "in", "a")
				pass(time.Until(k.work(w)))
				if c.grows {
					k.publish(w, "in", "b")
				}
				k.settle(w)
				if c.person != "" {
					if err := k.resolve(k.newest(w), c.person, ""); err != nil {
						t.Fatal(err)
					}
					k.settle(w)
				}
				rows := k.ledgerRows(w)
				if len(rows) < len(c.same)+1 {
					t.Fatalf("the rows are %+v", rows)
				}
				for i, same := range c.same {
					if got := rows[i].IdempotencyKey == rows[i+1].IdempotencyKey; got != same {
						t.Errorf("that call %d has the key of call %d is %v", i+2, i+1, got)
					}
				}
				for i, m := range rows {
					if i >= len(c.answers) && m.State != pawl.MutationApplied || m.KeptFor != "" && !c.grows {
						t.Errorf("call %d is %s, and its key is kept for %q", i+1, m.State, m.KeptFor)
					}
				}
			})
		})
	}
}

func later(n int) []tool.State { return slices.Repeat([]tool.State{tool.Later}, n) }

// a process that ends on either side of a step of the repetition leaves
// the next one the same key.
func TestCrashesInARepetitionKeepTheKey(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for i, place := range []string{"asked", "begun", "before call", "in flight", "called", "before result", "recorded"} {
			k.desk.clear()
			k.desk.loseRequests()
			w := k.deploy(fmt.Sprint("shop-", i), "1", orderDefinition())
			k.publish(w, "in", "a")
			k.work(w)
			k.desk.refuse = nil
			pass(time.Minute)
			if !k.crashAt(w, place, 1) {
				t.Errorf("%s: the session does not come by", place)
			}
			k.settle(w)
			rows := k.ledgerRows(w)
			for _, m := range rows {
				if m.IdempotencyKey != rows[0].IdempotencyKey {
					t.Errorf("%s: the rows are %+v", place, rows)
				}
			}
			if got := k.desk.things(); !slices.Equal(got, []string{"a"}) || rows[len(rows)-1].State != pawl.MutationApplied {
				t.Errorf("%s: orders %v, the rows are %+v", place, got, rows)
			}
		}
	})
}

// X-69, chaos finding 7: a call that arrives after its time is over, because its
// sender slept meanwhile, is one effect together with its repetition if the
// other end honours keys. If it does not, nobody can help it: that is why
// absentAfter must be longer than anything the other end takes.
func TestWhatNobodyCanHelp(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for ignores, want := range map[bool]int{false: 1, true: 2} {
			k.desk.clear()
			k.desk.ignoresKeys = ignores
			k.desk.loseRequests() // it is stuck in a process that sleeps
			w := k.deploy(fmt.Sprint("shop-", ignores), "1", orderDefinition())
			k.publish(w, "in", "a")
			k.work(w)
			k.start("another owner")
			k.desk.refuse = nil
			k.settle(w)
			first := k.ledgerRows(w)[0]
			if _, err := k.desk.Call(t.Context(), tool.Call{Method: first.Method, Args: first.Arguments, Key: first.IdempotencyKey}); err != nil {
				t.Fatal(err)
			}
			if got := k.desk.things(); len(got) != want {
				t.Errorf("keys ignored %v: orders %v", ignores, got)
			}
		}
	})
}

// chaos findings 6 and 7: a process that slept, and may have lost its lane, does
// not run the next handler, and does not make the call that it has just written
// down.
func TestNothingIsBegunByWhoMayHaveLostTheLane(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for i, ran := range [][]string{{}, {"consumers.order.prepare"}, {"consumers.order.prepare", "consumers.order.mutate"}} {
			k.desk.clear()
			w := k.deploy(fmt.Sprint("shop-", i), "1", orderDefinition())
			k.settle(w)
			k.ranSince()
			k.publish(w, "in", "a")
			s := &sleeper{kit: k, wakes: i}
			if _, err := k.s.work(t.Context(), s, w.ID); !errors.Is(err, queue.ErrLeaseLost) {
				t.Errorf("%d: the session ended with %v", i, err)
			}
			expect(t, "what ran", k.ranSince(), ran)
			if got := k.desk.things(); len(got) > 0 {
				t.Errorf("%d: orders %v", i, got)
			}
			k.start("another owner")
			k.settle(w)
			if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("%d: orders %v", i, got)
			}
		}
	})
}

// sleeper is a claim whose process sleeps after some questions.
type sleeper struct {
	*kit
	wakes int
}

func (s *sleeper) StillOwned() error {
	if s.wakes--; s.wakes < 0 {
		return queue.ErrLeaseLost
	}
	return nil
}

// An act is a method for some events, and nothing else: arguments with the time
// in them make no other act.
func TestActsAreToldApart(t *testing.T) {
	base := mutationstore.Mutation{Tool: "shop", Method: "post", Arguments: json.RawMessage(`{"at":1}`)}
	taken := func(topic string, ids ...string) Prepared {
		return Prepared{Reservations: []Reservation{{Topic: topic, IDs: ids}}}
	}
	first := actOf(base, taken("in", "x", "y"))
	with := func(change func(*mutationstore.Mutation)) mutationstore.Mutation {
		m := base
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		act  string
		same bool
	}{
		"another order of events":      {actOf(base, taken("in", "y", "x")), true},
		"other arguments":              {actOf(with(func(m *mutationstore.Mutation) { m.Arguments = json.RawMessage(`{"at":2}`) }), taken("in", "x", "y")), true},
		"another tool":                 {actOf(with(func(m *mutationstore.Mutation) { m.Tool = "store" }), taken("in", "x", "y")), false},
		"another method":               {actOf(with(func(m *mutationstore.Mutation) { m.Method = "put" }), taken("in", "x", "y")), false},
		"another topic":                {actOf(base, taken("out", "x", "y")), false},
		"fewer events":                 {actOf(base, taken("in", "x")), false},
		"events that look like others": {actOf(base, taken("in", "x\" \"y")), false},
	} {
		if (c.act == first) != c.same {
			t.Errorf("%s: that it is the same act is %v", name, c.act == first)
		}
	}
}
