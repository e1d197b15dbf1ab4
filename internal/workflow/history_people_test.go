package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// What people can say about a run, beside the outcomes of a call.
const (
	sayApprove = "approve"
	sayAlways  = "approve always"
	sayOther   = "approve something else"
	sayReject  = "reject"
	sayResume  = "resume"
	sayCancel  = "cancel"
)

var (
	aboutCalls     = []string{string(Happened), string(DidNotHappen), string(SkipIt), string(TryAgain)}
	aboutQuestions = []string{sayApprove, sayApprove, sayApprove, sayAlways, sayOther, sayReject, sayResume}
	anything       = slices.Concat(aboutCalls, aboutQuestions, []string{sayCancel})
)

// say is a person who answers about a run: mostly something that fits to how
// the newest one stands, sometimes anything about any of them, true or not.
// What is refused must change nothing, and the same said twice must be refused.
func (l *life) say() {
	runs := l.k.runs(l.w)
	if len(runs) == 0 {
		return
	}
	r, words := l.newest(), anything
	switch {
	case rapid.IntRange(0, 5).Draw(l.t, "stray") == 0:
		r = rapid.SampledFrom(runs).Draw(l.t, "run")
	case r.Status == pawl.StatusPausedApproval:
		words = aboutQuestions
	case r.Status == pawl.StatusPausedReconciliation:
		words = aboutCalls
	}
	word := rapid.SampledFrom(words).Draw(l.t, "word")
	newest := r.ID == lastIn(runs, r.Lane).ID
	asked := l.question(r)
	switch err := l.answer(r, word); {
	case err != nil && !errors.Is(err, pawl.ErrConflict):
		l.k.t.Fatalf("%s about run %s: %v", word, r.ID, err)
	case err != nil:
		return
	case !newest:
		l.k.t.Fatalf("%s about run %s, which is over, is not refused\n%s", word, r.ID, l.story())
	}
	clears := word == sayResume || asked == nil && slices.Contains([]string{sayApprove, sayAlways, sayOther}, word)
	if clears { // to say again that something is mended does no harm
		return
	}
	if asked != nil && word == sayOther {
		l.k.t.Fatalf("a call was approved that is not the one that was seen\n%s", l.story())
	}
	if err := l.answer(r, word); !errors.Is(err, pawl.ErrConflict) {
		l.k.t.Fatalf("%s about run %s for the second time: %v\n%s", word, r.ID, err, l.story())
	}
}

// newest is the newest run, zero if there was none; with partitions it is one that is
// not over, if there is any.
func (l *life) newest() (r runstore.Run) {
	runs := l.k.runs(l.w)
	for _, one := range runs {
		if one.ID == lastIn(runs, one.Lane).ID && (r.ID == "" || run.Terminal(r.Status) || !run.Terminal(one.Status)) {
			r = one
		}
	}
	return r
}

// lastIn is the newest of some runs in a lane.
func lastIn(runs []runstore.Run, lane string) (r runstore.Run) {
	for _, one := range runs {
		if one.Lane == lane {
			r = one
		}
	}
	return r
}

// answer says one thing about a run, and keeps the world's record of it if it is
// accepted.
func (l *life) answer(r runstore.Run, word string) error {
	open := l.unknownCall(r)
	err := l.k.do(func(ctx context.Context, tx *store.Tx) error {
		switch word {
		case sayApprove, sayAlways:
			return l.k.s.Approve(ctx, tx, r.ID, "", word == sayAlways, "tester")
		case sayOther:
			return l.k.s.Approve(ctx, tx, r.ID, "another", false, "tester")
		case sayReject:
			_, err := l.k.s.Reject(ctx, tx, r.ID, "tester")
			return err
		case sayResume:
			return l.k.s.ResumeRun(ctx, tx, r.ID, "tester")
		case sayCancel:
			_, err := l.k.s.CancelRun(ctx, tx, r, "tester")
			return err
		}
		return l.k.s.Resolve(ctx, tx, r.ID, Outcome(word), json.RawMessage(`"seen"`), "tester")
	})
	if err != nil || !slices.Contains(aboutCalls, word) {
		return err
	}
	if open == nil {
		l.k.t.Fatalf("%s about run %s is accepted, and its call is not unknown\n%s", word, r.ID, l.story())
	}
	switch _, happened := l.k.desk.orders[open.IdempotencyKey]; {
	case word == string(DidNotHappen) && happened:
		l.world.deny(open.IdempotencyKey, open.Arguments)
	case word == string(Happened) && !happened:
		l.world.misled[open.IdempotencyKey] = true
	}
	return nil
}

// unknownCall is the call of a run of which only people can know.
func (l *life) unknownCall(r runstore.Run) *mutationstore.Mutation {
	for _, m := range l.k.ledgerRows(l.w) {
		if m.RunID == r.ID && m.State == pawl.MutationIndeterminate {
			return &m
		}
	}
	return nil
}

// question is what a run waits for an answer to, and that can be answered.
func (l *life) question(r runstore.Run) (asked *mutationstore.Approval) {
	if r.Status != pawl.StatusPausedApproval {
		return nil
	}
	l.k.read(func(ctx context.Context, tx *store.Tx) error {
		a, err := mutationstore.In(tx).NewestApproval(ctx, r.ID)
		if errors.Is(err, pawl.ErrNotFound) {
			return nil
		}
		if err == nil && r.ErrorClass == "" {
			asked = &a
		}
		return err
	})
	return asked
}

// answerTruly is a person who answers what the newest run waits for, and
// reports whether it waited.
func (l *life) answerTruly(r runstore.Run) bool {
	if open := l.unknownCall(r); open != nil {
		word := string(DidNotHappen)
		if _, happened := l.k.desk.orders[open.IdempotencyKey]; happened {
			word = string(Happened)
		}
		if err := l.answer(r, word); err != nil {
			l.k.t.Fatalf("the answer is not taken: %v\n%s", err, l.story())
		}
		return true
	}
	if asked := l.question(r); asked == nil || asked.State != mutationstore.ApprovalPending {
		return false
	}
	if err := l.answer(r, sayApprove); err != nil {
		l.k.t.Fatalf("the approval is not taken: %v\n%s", err, l.story())
	}
	return true
}

// doubt is an order whose answer or request is lost, and about which the desk
// tells nothing until it is given up. Then a person may say what happened.
func (l *life) doubt() {
	l.calls = append([]string{rapid.SampledFrom([]string{lostAnswer, lostRequest}).Draw(l.t, "lost")}, l.calls...)
	l.blind = 99
	l.publish()
	for range 20 {
		until := l.work()
		if l.newest().Status != pawl.StatusPausedReconciliation || until.IsZero() {
			break
		}
		pass(time.Until(until))
	}
	l.blind = 0
	if rapid.IntRange(0, 3).Draw(l.t, "silent") > 0 {
		l.say()
		l.work()
	}
}

// week lets a question expire that nobody answers. Nothing else runs meanwhile.
func (l *life) week() {
	r := l.newest()
	asked := l.question(r)
	if asked == nil || asked.State != mutationstore.ApprovalPending {
		return
	}
	late := asked.ExpiresAt.Add(time.Second)
	if rapid.Bool().Draw(l.t, "unattended") { // nobody works on the lane: the server is down
		pass(time.Until(late))
		if err := l.answer(r, sayApprove); !errors.Is(err, pawl.ErrConflict) {
			l.k.t.Fatalf("an approval that comes too late: %v\n%s", err, l.story())
		}
		return
	}
	for range 4 {
		until := l.work()
		if until.IsZero() || until.After(late) {
			break
		}
		pass(time.Until(until))
	}
	pass(time.Until(late))
}

// revoke takes back that the workflow need not ask.
func (l *life) revoke() {
	err := l.k.do(func(ctx context.Context, tx *store.Tx) error {
		return mutationstore.In(tx).RevokeApprovalRule(ctx, l.w.ID, "desk", "sign", "tester")
	})
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		l.k.t.Fatal(err)
	}
}
