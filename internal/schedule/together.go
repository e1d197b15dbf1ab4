package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// Most slots are alike: they are due, nothing speaks against them, they end well
// and another one follows. Such slots, of all schedules that are due at the same
// time, begin in one transaction of statements for all of them, and end in another
// one. If the execution service is part of this process, its claims are in the
// first and its outcomes in the second. A slot of another kind is left out, and
// goes through take and record by itself; so does every slot of a transaction that
// was refused because of one of them.

// executor is the execution service of this process.
type executor interface {
	Prepare(tx *store.Tx, key, graphID string, req contract.RunRequestV1, g grant.Funded) *execution.Flight
	ClaimAll(ctx context.Context, tx *store.Tx, list []*execution.Flight) error
	FinishAll(ctx context.Context, tx *store.Tx, list []execution.Success) error
	Fly(ctx context.Context, l *execution.Flight, end func(contract.RunAnswerV1, execution.Success) error) (answer contract.RunAnswerV1, ended bool, err error)
}

// member is a slot that wants to begin or to end.
type member interface {
	place() schedulestore.Place
	owner() store.Fence
}

// holdTogether holds slots that begin, or that are ending, and their schedules, and
// returns those that pass.
func holdTogether[T member](ctx context.Context, tx *store.Tx, all []T, ending bool, pass func(T, schedulestore.Held) (bool, error)) (some []T, err error) {
	fences, places, byKey := make([]store.Fence, len(all)), make([]schedulestore.Place, 0, len(all)), make(map[string]T, len(all))
	for i, m := range all {
		fences[i] = m.owner()
		key := pawl.SlotKey(m.place().ScheduleID, m.place().ScheduledFor)
		if _, there := byKey[key]; !there { // of two that have one slot, one goes by itself
			byKey[key], places = m, append(places, m.place())
		}
	}
	if err := tx.FenceAll(ctx, fences); err != nil {
		return nil, err
	}
	held, err := schedulestore.In(tx).HoldSlots(ctx, places, ending)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		m := byKey[pawl.SlotKey(h.Slot.ScheduleID, h.Slot.ScheduledFor)]
		passed, err := pass(m, h)
		if err != nil {
			return nil, err
		}
		if passed {
			some = append(some, m)
		}
	}
	return some, nil
}

// apart reports whether a transaction of many ended so that each can go on by
// itself: it was committed, or nothing of it was.
func apart(err error) bool {
	return err == nil || errors.Is(err, store.ErrSetRefused) || errors.Is(err, pawl.ErrLeaseLost)
}

// start is a slot that wants to begin.
type start struct {
	ctx   context.Context
	fence store.Fence
	at    schedulestore.Place

	begun  bool // else it must be looked at by itself
	err    error
	held   schedulestore.Held
	next   time.Time // instant of its schedule; zero: there is none
	run    runstore.Run
	flight *execution.Flight // nil: the execution service is another process
}

func (w *start) place() schedulestore.Place { return w.at }
func (w *start) owner() store.Fence         { return w.fence }

// beginTogether begins the first attempt of a slot if it is like most. After an
// error it may have begun.
func (a *attempt) beginTogether(ctx context.Context, scheduleID string, at time.Time) (bool, error) {
	if err := a.cfg.fault("starting"); err != nil {
		return false, err
	}
	w := &start{ctx: ctx, fence: a.claim.Fence(), at: schedulestore.Place{ScheduleID: scheduleID, ScheduledFor: at}}
	a.starts.Do(w, a.beginAll)
	if w.begun || w.err != nil {
		a.schedule, a.slot, a.run, a.flight, a.together = w.held.Schedule, w.held.Slot, w.run, w.flight, true
	}
	return w.begun, w.err
}

// beginAll begins those of some slots that are like most, in one transaction.
func (s *Service) beginAll(all []*start) {
	all = slices.DeleteFunc(all, func(w *start) bool {
		w.err = context.Cause(w.ctx) // it waited until nobody wants it any more
		return w.err != nil
	})
	if len(all) == 0 {
		return
	}
	var begun []*start
	err := s.db.Write(context.WithoutCancel(all[0].ctx), func(ctx context.Context, tx *store.Tx) (err error) {
		if begun, err = s.holdStarts(ctx, tx, all); err == nil && len(begun) > 0 {
			err = s.writeStarts(ctx, tx, begun)
		}
		return err
	})
	if apart(err) {
		for _, w := range begun {
			w.begun = err == nil
		}
		return
	}
	for _, w := range all {
		w.err = err
	}
}

// holdStarts holds the slots that can begin at once, with their runs and flights
// drafted.
func (s *Service) holdStarts(ctx context.Context, tx *store.Tx, all []*start) ([]*start, error) {
	var ids []string
	some, err := holdTogether(ctx, tx, all, false, func(w *start, h schedulestore.Held) (bool, error) {
		w.held = h
		if h.Schedule.GrantID != "" {
			ids = append(ids, h.Schedule.GrantID)
		}
		schedule, err := s.timesOf(ctx, tx, h.Schedule)
		if err != nil {
			return false, err
		}
		w.next = nextOwn(h.Schedule, schedule, h.Slot.ScheduledFor)
		start := startOf(schedule, h.Slot)
		return canBegin(h, start, tx.Now) && s.mayStart(start), nil
	})
	if err != nil || len(some) == 0 {
		return nil, err
	}
	grants, err := grant.Load(ctx, tx, ids)
	return slices.DeleteFunc(some, func(w *start) bool { return !s.draft(tx, w, grants[w.held.Schedule.GrantID]) }), err
}

// canBegin reports whether a slot is due and nothing speaks against its first
// attempt but perhaps its grant. What else there is, take knows.
func canBegin(h schedulestore.Held, start, now time.Time) bool {
	sch, slot := h.Schedule, h.Slot
	return run.SlotStatus(slot.Status) == run.SlotPending && slot.Trigger == triggerSchedule && slot.GrantID == "" && !waitsFresh(slot) && len(RulesOf(sch).Needs) == 0 &&
		sch.Enabled && sch.CappedUntil.IsZero() && slot.Revision == sch.Revision && !mayOverlap(sch) &&
		!start.After(now) && now.Sub(start) <= grace && !spent(sch) &&
		!h.Running && !h.Failures && (pawl.ConcurrencyPolicy(sch.Policy) != pawl.PolicyForbid || !h.LastEnd.After(slot.ScheduledFor))
}

// draft drafts the run of a slot, and its flight if the execution service is part
// of this process. It reports false if its grant, or the execution service, may
// have something against it.
func (s *Service) draft(tx *store.Tx, w *start, g grant.Funded) bool {
	sch, slot := w.held.Schedule, &w.held.Slot
	if !work.Is(sch.GraphID) && (g.ID == "" || grant.Check(g.Grant, sch.GraphID, tx.Now) != nil) {
		return false
	}
	w.run = s.ledger.Draft(w.fence, ledger.Spec{
		Kind: pawl.KindSchedule, Lane: laneOf(sch, slot.ScheduledFor), Handler: sch.Name, HandlerType: pawl.HandlerSchedule,
		Trigger: slot.Trigger, ScheduledFor: slot.ScheduledFor, Validated: true,
	}, runstore.Run{})
	slot.Status, slot.RunID, slot.GrantID, slot.Attempts, slot.StartedAt, slot.UpdatedAt = string(run.SlotRunning), w.run.ID, sch.GrantID, 1, tx.Now, tx.Now
	if s.local == nil {
		return true
	}
	w.flight = s.local.Prepare(tx, pawl.SlotKey(sch.ID, slot.ScheduledFor), sch.GraphID, requestOf(sch, *slot), g)
	return w.flight != nil
}

// writeStarts writes what was drafted.
func (s *Service) writeStarts(ctx context.Context, tx *store.Tx, all []*start) error {
	drafts, flights := make([]runstore.Run, len(all)), make([]*execution.Flight, len(all))
	slots, turns := make([]schedulestore.Slot, len(all)), make([]schedulestore.Turn, len(all))
	for i, w := range all {
		drafts[i], flights[i], slots[i] = w.run, w.flight, w.held.Slot
		turns[i] = schedulestore.Turn{ScheduleID: w.held.Schedule.ID, Next: w.next}
		s.emitSlot(tx, w.held.Schedule, w.held.Slot)
	}
	if s.local != nil {
		if err := s.local.ClaimAll(ctx, tx, flights); err != nil {
			return err
		}
	}
	if err := schedulestore.In(tx).StartSlots(ctx, slots); err != nil {
		return err
	}
	if err := schedulestore.In(tx).SetTurns(ctx, turns); err != nil {
		return err
	}
	runs, err := s.ledger.BeginAll(ctx, tx, drafts)
	if err != nil {
		return err
	}
	for i, w := range all {
		w.run = runs[i]
	}
	return nil
}

func (s *Service) emitSlot(tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot) {
	s.cfg.Emit(tx, lane.Change{Ref: refOf(sch.ID, sch.Name), What: "slot", Detail: SlotDetail{Slot: client.At(slot.ScheduledFor), Status: slot.Status, Disposition: slot.Disposition}})
}

// ending is a slot that began together with others and ended well.
type ending struct {
	*attempt
	answer  contract.RunAnswerV1
	success *execution.Success // nil: the outcome is written
	next    time.Time          // instant of its schedule
	start   time.Time          // of that, by the jitter

	closed bool // else it must be looked at by itself
	err    error
}

func (e *ending) owner() store.Fence { return e.run.Owner }
func (e *ending) place() schedulestore.Place {
	return schedulestore.Place{ScheduleID: e.slot.ScheduleID, ScheduledFor: e.slot.ScheduledFor}
}

// endTogether commits the run of a slot that ended well, closes it and makes the
// next one, if it began together with others. success is the outcome if nobody
// wrote it yet. The error is store.ErrSetRefused if it must be ended by itself.
func (a *attempt) endTogether(answer contract.RunAnswerV1, success *execution.Success) error {
	if !a.together || !answer.OK {
		return store.ErrSetRefused
	}
	if err := a.cfg.fault("ending"); err != nil {
		return err
	}
	e := &ending{attempt: a, answer: answer, success: success}
	a.ends.Do(e, a.endAll)
	switch {
	case e.err != nil:
		return e.err
	case !e.closed:
		return store.ErrSetRefused
	}
	return a.cfg.fault("ended")
}

// endAll ends those of some slots after which things go on as they mostly do, in
// one transaction.
func (s *Service) endAll(all []*ending) {
	var ended []*ending
	err := s.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) (err error) {
		ended, err = holdTogether(ctx, tx, all, true, func(e *ending, h schedulestore.Held) (bool, error) {
			schedule, err := s.timesOf(ctx, tx, h.Schedule)
			if err != nil || spent(h.Schedule) {
				return false, err
			}
			e.next, _ = schedule.Next(h.Slot.ScheduledFor)
			e.start = schedule.Start(e.next)
			return goesOn(h, e.run.ID, e.next, tx.Now), nil
		})
		if err == nil && len(ended) > 0 {
			err = s.writeEnds(ctx, tx, ended)
		}
		return err
	})
	if apart(err) {
		for _, e := range ended {
			e.closed = err == nil
		}
		return
	}
	for _, e := range all {
		e.err = err
	}
}

// goesOn reports whether a schedule is as it was when the slot began, well, and
// goes on with one slot that is not there yet.
func goesOn(h schedulestore.Held, runID string, next, now time.Time) bool {
	sch, slot := h.Schedule, h.Slot
	return run.SlotStatus(slot.Status) == run.SlotRunning && slot.RunID == runID &&
		sch.Enabled && sch.Calm && slot.Revision == sch.Revision && !mayOverlap(sch) &&
		!h.Open && !h.Failures && next.After(now) && next.Equal(sch.NextRunAt)
}

// writeEnds writes the outcomes of slots and what follows.
func (s *Service) writeEnds(ctx context.Context, tx *store.Tx, all []*ending) error {
	runs, outputs, slots := make([]runstore.Run, len(all)), make([]json.RawMessage, len(all)), make([]schedulestore.Ended, len(all))
	jobs, outcomes := make([]store.JobSpec, len(all)), make([]execution.Success, 0, len(all))
	for i, e := range all {
		runs[i], outputs[i] = e.run, outputOf(e.schedule, e.answer)
		slots[i] = schedulestore.Ended{Slot: e.slot, SlotEnd: endOf(e.schedule, e.answer), Next: e.next}
		job, err := jobOf(e.schedule, e.next, e.start)
		if err != nil {
			return err
		}
		jobs[i] = job
		if e.success != nil {
			outcomes = append(outcomes, *e.success)
		}
		closed := e.slot
		closed.Status, closed.Disposition = slots[i].Status, slots[i].Disposition
		s.emitSlot(tx, e.schedule, closed)
	}
	if len(outcomes) > 0 {
		if err := s.local.FinishAll(ctx, tx, outcomes); err != nil {
			return err
		}
	}
	if err := s.ledger.CommitAll(ctx, tx, runs, outputs); err != nil {
		return err
	}
	if err := schedulestore.In(tx).CloseSlots(ctx, slots); err != nil {
		return err
	}
	_, err := s.jobs.EnqueueTx(ctx, tx, jobs...)
	return err
}
