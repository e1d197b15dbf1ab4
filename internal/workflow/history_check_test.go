package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// check holds what must be true after everything that happens: nothing is done
// twice unless somebody said on his word that it did not happen, and nothing
// that was skipped is done.
func (l *life) check(after string) {
	l.k.checkInvariants(l.w)
	// What a person does to a lane that rests is in its row at once; what a crash
	// left is, when somebody has looked.
	if slices.Contains([]string{"crash", "shutdown", "restart", "during"}, after) {
		l.sure = false
	} else if l.sure {
		l.k.checkRow(l.w, after)
	}
	if id := l.world.repeated(); id != "" {
		l.k.t.Fatalf("after %s: %s was ordered twice, and nobody said in between that it was not\n%s", after, id, l.story())
	}
	for id, most := range l.skipped {
		if n := l.orders()[id]; n > most {
			l.k.t.Fatalf("after %s: %s was skipped and ordered then\n%s", after, id, l.story())
		}
	}
	l.checkChains(after)
	if l.k.t.Failed() {
		l.k.t.Fatalf("after %s\n%s", after, l.story())
	}
}

// work is one session. If it leaves the lane idle, no event is pending: what a
// consumer was told of or looked for is never forgotten.
func (l *life) work() time.Time {
	if l.board != nil {
		return l.workAll()
	}
	until := l.k.work(l.w)
	idle := until.IsZero() || until.After(time.Now())
	l.sure = idle
	if w := l.k.workflow(l.w.Name); !idle || w.Desired != desiredActive || !run.Terminal(l.k.lastRun(l.w).Status) {
		return until
	}
	for _, topic := range []string{"in", "out"} {
		for id, status := range l.k.statuses(l.w, topic) {
			if status == eventstore.EventPending {
				l.k.t.Fatalf("the lane rests until %v, and event %s is pending\n%s", until, id, l.story())
			}
		}
	}
	return until
}

// checkChains holds A-88..A-92, X-18: every attempt follows one that ended, of
// the same handler, as the next one; what was recorded goes along.
func (l *life) checkChains(after string) {
	byLane := map[string][]runstore.Run{}
	for _, r := range l.k.runs(l.w) {
		byLane[r.Lane] = append(byLane[r.Lane], r)
	}
	for _, list := range byLane {
		l.checkChainsIn(after, list)
	}
}

func (l *life) checkChainsIn(after string, list []runstore.Run) {
	byID, followed := map[string]runstore.Run{}, map[string]string{}
	for i, r := range list {
		byID[r.ID] = r
		if r.Status == pawl.StatusActive && i < len(list)-1 {
			l.k.t.Errorf("after %s: run %s is active and not the newest", after, r.ID)
		}
		if r.RetryOf == "" {
			if r.Attempt != 1 {
				l.k.t.Errorf("after %s: run %s is attempt %d of nothing", after, r.ID, r.Attempt)
			}
			continue
		}
		was, ok := byID[r.RetryOf]
		switch {
		case !ok:
			l.k.t.Errorf("after %s: run %s follows %s, which is not before it", after, r.ID, r.RetryOf)
		case followed[was.ID] != "":
			l.k.t.Errorf("after %s: run %s is followed by %s and %s", after, was.ID, followed[was.ID], r.ID)
		case r.Attempt != was.Attempt+1 || r.Handler != was.Handler || run.Terminal(was.Status):
			l.k.t.Errorf("after %s: run %s (attempt %d of %s) follows attempt %d of %s, which is %s", after, r.ID, r.Attempt, r.Handler, was.Attempt, was.Handler, was.Status)
		case run.MutationApplied(was.HandlerType, was.Phase) && (string(was.PrepareResult) != string(r.PrepareResult) || string(was.MutationResult) != string(r.MutationResult)):
			l.k.t.Errorf("after %s: run %s lost the results of %s", after, r.ID, was.ID)
		}
		followed[r.RetryOf] = r.ID
	}
	for i, r := range list {
		if run.Open(r.Status) && followed[r.ID] == "" && i < len(list)-1 {
			l.k.t.Errorf("after %s: run %s is %s, and work went on without it", after, r.ID, r.Status)
		}
	}
}

// heal makes everything well: the desk works and knows, the script is right,
// and people resume and answer whatever waits for them, truly, until nothing is
// left.
func (l *life) heal() {
	l.calls, l.reads, l.blind, l.denies, l.during = nil, nil, 0, 0, map[string]func(){}
	l.k.desk.takes = 0
	l.k.deploy(l.w.Name, "well", l.definition(edition{batch: 1, every: "8760h", method: "order"}))
	for range 60 {
		l.k.resume(l.w.Name)
		until := l.work()
		l.check("healing")
		last := l.newest()
		switch {
		case run.Terminal(last.Status) && (until.IsZero() || time.Until(until) > 24*time.Hour):
			return
		case l.answerTruly(last):
		case !until.IsZero():
			pass(time.Until(until))
		}
	}
	l.k.t.Fatalf("it does not get well\n%s", l.story())
}

// checkEnd holds what must be true when all is well and done: every event that
// nobody gave up has exactly one call that counts as made, and what counts is
// what happened, unless somebody said otherwise.
func (l *life) checkEnd() {
	in, out, done := l.k.statuses(l.w, "in"), l.k.statuses(l.w, "out"), l.callsThatCount()
	for _, id := range l.published {
		if _, ok := in[id]; !ok {
			l.k.t.Errorf("event %s is gone", id)
		}
	}
	for id, status := range in {
		l.checkEvent(id, status, done[id])
		if _, told := out["out-"+id]; told != (len(done[id]) == 1 && !l.quiet) {
			l.k.t.Errorf("event %s has the calls %v, and that next told of it is %v", id, done[id], told)
		}
	}
	mixed := l.orderedWithSkipped()
	for id, status := range out {
		if status != eventstore.EventConsumed && !(mixed[id] && status == eventstore.EventSkipped) {
			l.k.t.Errorf("event %s is %s", id, status)
		}
	}
	l.checkProducer(in)
	l.checkLedger()
	for _, r := range l.k.runs(l.w) {
		if r.Status == pawl.StatusActive {
			l.k.t.Errorf("run %s is still active", r.ID)
		}
	}
	if see := l.k.look(l.w.Name); see.State != run.Idle || see.Pending != 0 {
		l.k.t.Errorf("people see %s (%s) with %d pending", see.State, see.Sentence, see.Pending)
	}
	if l.k.t.Failed() {
		l.k.t.Fatalf("in the end\n%s", l.story())
	}
}

// callsThatCount are, for each event, the states of the calls that ended its
// story: applied, or skipped by a person.
func (l *life) callsThatCount() map[string][]pawl.MutationState {
	out := map[string][]pawl.MutationState{}
	for _, m := range l.k.ledgerRows(l.w) {
		if m.State != pawl.MutationApplied && m.State != pawl.MutationSkipped {
			continue
		}
		for _, id := range idsIn(m.Arguments) {
			out[id] = append(out[id], m.State)
		}
	}
	return out
}

// checkEvent holds how the story of one event may end.
func (l *life) checkEvent(id string, status eventstore.EventStatus, done []pawl.MutationState) {
	_, skipped := l.skipped[id]
	switch {
	case status != eventstore.EventConsumed && status != eventstore.EventSkipped:
		l.k.t.Errorf("event %s is %s for ever", id, status)
	case len(done) > 1:
		l.k.t.Errorf("event %s has several calls that count: %v", id, done)
	case len(done) == 0 && (!skipped || status == eventstore.EventConsumed):
		l.k.t.Errorf("event %s is %s and no call of it counts", id, status)
	case len(done) == 1 && (done[0] == pawl.MutationApplied) != (status == eventstore.EventConsumed):
		l.k.t.Errorf("event %s is %s and its call is %s", id, status, done[0])
	}
}

// orderedWithSkipped are the events that next publishes for orders of which a
// part was skipped: what comes from several inputs is given up with any of them
// (context 3.2.3, 3.2.6).
func (l *life) orderedWithSkipped() map[string]bool {
	out := map[string]bool{}
	for _, m := range l.k.ledgerRows(l.w) {
		ids := idsIn(m.Arguments)
		given := slices.ContainsFunc(ids, func(id string) bool { _, skipped := l.skipped[id]; return skipped })
		for _, id := range ids {
			out["out-"+id] = out["out-"+id] || given
		}
	}
	return out
}

// checkProducer holds X-22: the state of the producer and what it published
// were always committed together.
func (l *life) checkProducer(in map[string]eventstore.EventStatus) {
	var state struct{ N int }
	if err := json.Unmarshal(l.k.kept(l.w, "poll").State, &state); err != nil {
		l.k.t.Fatal(err)
	}
	polled := 0
	for id := range in {
		if strings.HasPrefix(id, "p") {
			polled++
		}
	}
	if _, last := in[fmt.Sprint("p", state.N)]; polled != state.N || !last {
		l.k.t.Errorf("the producer counted to %d and published %d", state.N, polled)
	}
}

// checkLedger holds that the ledger tells the truth: the last call with a key is
// recorded as applied if and only if it happened, unless somebody said otherwise
// or gave it up; the calls with the same key before it failed and were for the
// same events; and none is open.
func (l *life) checkLedger() {
	last := map[string]mutationstore.Mutation{}
	for _, m := range l.k.ledgerRows(l.w) {
		if was, again := last[m.IdempotencyKey]; again && (was.State != pawl.MutationFailed || !slices.Equal(idsIn(was.Arguments), idsIn(m.Arguments))) {
			l.k.t.Errorf("the call %s %s has the key of %s %s, which is %s", m.ID, m.Arguments, was.ID, was.Arguments, was.State)
		}
		last[m.IdempotencyKey] = m
	}
	for key, m := range last {
		_, happened := l.k.desk.orders[key]
		wrong := (m.State == pawl.MutationApplied) != happened && m.State != pawl.MutationSkipped && !l.world.misled[key]
		if !run.Final(m.State) || wrong {
			l.k.t.Errorf("the call %s %s is %s, and that it happened is %v", m.ID, m.Arguments, m.State, happened)
		}
	}
	for key := range l.k.desk.orders {
		if _, known := last[key]; !known {
			l.k.t.Errorf("the order with key %s is not in the ledger", key)
		}
	}
}

// story is the whole history in lines, for a reader of a failure.
func (l *life) story() string {
	var b strings.Builder
	for _, r := range l.k.runs(l.w) {
		fmt.Fprintf(&b, "%s %s attempt %d %s %s %s\n", pawl.FormatTime(r.CreatedAt), r.Handler, r.Attempt, r.Phase, r.Status, r.ErrorMessage)
	}
	for _, m := range l.k.ledgerRows(l.w) {
		_, happened := l.k.desk.orders[m.IdempotencyKey]
		fmt.Fprintf(&b, "%s call %s %s by %q, happened %v\n", pawl.FormatTime(m.CreatedAt), m.Arguments, m.State, m.ResolvedBy, happened)
	}
	in := l.k.statuses(l.w, "in")
	ids := slices.Sorted(func(yield func(string) bool) {
		for id := range in {
			if !yield(id) {
				return
			}
		}
	})
	for _, id := range ids {
		fmt.Fprintf(&b, "event %s %s\n", id, in[id])
	}
	return b.String()
}
