package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// maxInput is the most bytes of the input of a schedule.
const maxInput = 256 << 10

var scheduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// checkSchedule finds everything that is wrong with a schedule, before anything
// is written (C-26).
func checkSchedule(s schedulestore.Schedule, times error) error {
	var faults []pawl.Field
	add := func(pointer, format string, values ...any) {
		faults = append(faults, pawl.Field{Pointer: pointer, Message: fmt.Sprintf(format, values...)})
	}
	if !scheduleName.MatchString(s.Name) {
		add("/name", "must begin with a letter or digit and have at most 128 letters, digits, dots, hyphens and underscores")
	}
	checkWhat(s, add)
	RulesOf(s).check(add)
	if !pawl.ConcurrencyPolicy(s.Policy).Valid() {
		add("/concurrencyPolicy", "must be Queue, Forbid, Allow or Replace, not %q", s.Policy)
	}
	if len(s.Labels) > 64 {
		add("/labels", "must have at most 64 entries")
	}
	if e, ok := errors.AsType[*pawl.Error](times); ok && e.Code == pawl.CodeInvalid {
		faults = append(faults, e.Fields...)
	} else if times != nil {
		return times
	}
	if len(faults) > 0 {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "check schedule", Msg: "the schedule is not valid", Hint: "pawl cron EXPR shows what an expression means.", Fields: faults}
	}
	return nil
}

// checkWhat finds what is wrong with what a schedule runs.
func checkWhat(s schedulestore.Schedule, add func(pointer, format string, values ...any)) {
	if work.Is(s.GraphID) {
		what, err := work.Read(s.Input)
		if err != nil || len(s.Input) > maxInput {
			add("/run", "must be JSON of at most %d bytes", maxInput)
			return
		}
		work.Check(what, func(pointer, format string, values ...any) { add("/run"+pointer, format, values...) })
		if what.Dir != "" && !filepath.IsAbs(what.Dir) {
			add("/run/dir", "must be the whole path of a folder; one from the definition's folder is for definitions that the server reads itself")
		}
		return
	}
	if _, _, err := contract.ParseGraphID(s.GraphID); err != nil {
		add("/graphId", "%s", messageOf(err))
	}
	if !json.Valid(s.Input) || len(s.Input) > maxInput {
		add("/input", "must be JSON of at most %d bytes", maxInput)
	}
}

// oneWork refuses a request that says more than one thing that is to run.
func oneWork(graphID string, input json.RawMessage, grantID string, what *client.PlainRun) error {
	var faults []pawl.Field
	add := func(pointer, message string) { faults = append(faults, pawl.Field{Pointer: pointer, Message: message}) }
	if work.Is(graphID) {
		add("/graphId", "the provider "+work.Provider+" belongs to this server; send run")
	}
	if what != nil {
		if graphID != "" {
			add("/run", "excludes graphId")
		}
		if len(input) > 0 {
			add("/input", "is for graphs; a command has env, a URL has body")
		}
		if grantID != "" {
			add("/executionGrantId", "is for graphs; what run says needs none")
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "check schedule", Msg: "the schedule is not valid", Hint: "A schedule has either a graph or a run.", Fields: faults}
}

// Create makes a schedule with its grant and its first slot, in the caller's
// transaction (C-27, C-28).
func (s *Service) Create(ctx context.Context, tx *store.Tx, ownerID string, in client.ScheduleRequest, by string) (schedulestore.Schedule, error) {
	in = withDefaults(in)
	sch := schedulestore.Schedule{
		Name: in.Name, OwnerUserID: ownerID, GrantID: in.ExecutionGrantID, GraphID: in.GraphID, Input: in.Input, Cron: string(in.Cron), Timezone: in.Timezone,
		Timing: newTiming(in.Timing), MaxRuns: in.MaxRuns, Policy: string(in.ConcurrencyPolicy), Enabled: in.Enabled == nil || *in.Enabled, Labels: in.Labels,
	}
	if err := oneWork(in.GraphID, in.Input, in.ExecutionGrantID, in.Run); err != nil {
		return schedulestore.Schedule{}, err
	}
	if in.Run != nil {
		sch.GraphID, sch.Input = work.Graph(*in.Run)
	}
	sch.Rules = Rules{in.Idempotent, in.Missed, in.Retry, termsOf(in)}.store()
	if len(sch.Input) == 0 {
		sch.Input = json.RawMessage("{}")
	}
	if err := checkSchedule(sch, s.planTimes(ctx, tx, &sch, schedulestore.Schedule{})); err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := s.checkNeeds(ctx, tx, schedulestore.Schedule{}, sch); err != nil {
		return schedulestore.Schedule{}, err
	}
	var err error
	if sch.GrantID, err = s.grantFor(ctx, tx, sch); err != nil {
		return schedulestore.Schedule{}, err
	}
	if sch, err = schedulestore.In(tx).InsertSchedule(ctx, sch, by); err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := s.declareTerms(ctx, tx, schedulestore.Schedule{}, sch); err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := s.chain(ctx, tx, sch, tx.Now, false); err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := tx.Audit(ctx, by, "schedule.create", "schedule:"+sch.ID, map[string]string{"name": sch.Name, "graph": sch.GraphID}); err != nil {
		return schedulestore.Schedule{}, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(sch.ID, sch.Name), What: "created"})
	return schedulestore.In(tx).GetSchedule(ctx, sch.ID)
}

// grantFor is the grant that a schedule runs under: the one that it names,
// which must be the owner's and allow the graph, or one made for it alone.
func (s *Service) grantFor(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (string, error) {
	if work.Is(sch.GraphID) {
		return "", nil
	}
	if sch.GrantID == "" {
		g, err := s.cfg.Grants.CreateForGraph(ctx, tx, sch.OwnerUserID, sch.GraphID)
		return g.ID, err
	}
	g, err := s.cfg.Grants.Get(ctx, tx, sch.OwnerUserID, sch.GrantID)
	if err != nil {
		return "", badGrant(err)
	}
	return g.ID, badGrant(grant.Check(g, sch.GraphID, tx.Now))
}

// badGrant tells that a grant does not do as a fault of the schedule that names
// it. What says nothing about the grant stays as it is.
func badGrant(err error) error {
	code, refused := grant.RefusalCode(err)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		code = contract.GrantNotFound
	case !refused:
		return err
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: string(code), Op: "check schedule", Msg: messageOf(err), Hint: "Leave it out, and a grant is made for this graph alone.",
		Fields: []pawl.Field{{Pointer: "/executionGrantId", Message: messageOf(err)}},
	}
}

// Owned reads a schedule of its owner; that of somebody else is not found. An
// empty owner is everybody's.
func (s *Service) Owned(ctx context.Context, tx *store.Tx, ownerID, id string) (schedulestore.Schedule, error) {
	sch, err := s.Kept(ctx, tx, ownerID, id)
	if err == nil && !sch.DeletedAt.IsZero() {
		err = noSchedule(id)
	}
	return sch, err
}

// Kept reads a schedule like Owned, also one that was deleted: what it did can
// still be read.
func (s *Service) Kept(ctx context.Context, tx *store.Tx, ownerID, id string) (schedulestore.Schedule, error) {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, id)
	if err == nil && ownerID != "" && sch.OwnerUserID != ownerID {
		err = noSchedule(id)
	}
	return sch, err
}

func noSchedule(id string) error {
	return &pawl.Error{Code: pawl.CodeNotFound, Op: "read schedule", Msg: fmt.Sprintf("there is no schedule %q", id), Hint: "pawl get schedules lists them."}
}

// Update changes a schedule, in the caller's transaction. A slot that waits for
// the schedule as it was is closed, and the next one is that of the new one
//
func (s *Service) Update(ctx context.Context, tx *store.Tx, ownerID, id string, in client.SchedulePatch, by string) (schedulestore.Schedule, error) {
	return s.update(ctx, tx, ownerID, id, in, nil, by)
}

// update changes a schedule. As far as the change says nothing its rules are those
// given; nil: as they were.
func (s *Service) update(ctx context.Context, tx *store.Tx, ownerID, id string, in client.SchedulePatch, rules *Rules, by string) (schedulestore.Schedule, error) {
	read, err := s.Owned(ctx, tx, ownerID, id)
	if err != nil {
		return schedulestore.Schedule{}, err
	}
	// Calendars before schedules, as whoever changes a calendar does.
	if err := s.shareCalendars(ctx, tx, merged(read, in)); err != nil {
		return schedulestore.Schedule{}, err
	}
	was, err := schedulestore.In(tx).HoldSchedule(ctx, id)
	if err != nil {
		return schedulestore.Schedule{}, err
	}
	graphID, grantID := "", ""
	if in.GraphID != nil {
		graphID = *in.GraphID
	}
	if in.ExecutionGrantID != nil {
		grantID = *in.ExecutionGrantID
	}
	if err := oneWork(graphID, in.Input, grantID, in.Run); err != nil {
		return schedulestore.Schedule{}, err
	}
	if work.Is(was.GraphID) && in.GraphID == nil && len(in.Input) > 0 {
		return schedulestore.Schedule{}, oneWork("", in.Input, "", &client.PlainRun{})
	}
	held := was
	if rules != nil {
		held.Rules = rules.store()
	}
	next := merged(held, in)
	if err := checkSchedule(next, s.planTimes(ctx, tx, &next, was)); err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := s.checkNeeds(ctx, tx, was, next); err != nil {
		return schedulestore.Schedule{}, err
	}
	if next.GrantID != was.GrantID || next.GraphID != was.GraphID {
		if next.GrantID, err = s.regrant(ctx, tx, was, next); err != nil {
			return schedulestore.Schedule{}, err
		}
	}
	if next.Enabled && !was.Enabled || uncapped(next, was, in) {
		next.Issue, next.CappedUntil = "", time.Time{}
	}
	changed := next.Cron != was.Cron || next.Timezone != was.Timezone || next.Enabled != was.Enabled || next.Policy != was.Policy ||
		next.GraphID != was.GraphID || string(next.Input) != string(was.Input) || next.GrantID != was.GrantID ||
		next.Timing != was.Timing || next.MaxRuns != was.MaxRuns || !sameRules(next, was)
	if !changed && next.Name == was.Name && maps.Equal(next.Labels, was.Labels) && sameTerms(next, was) && next.CappedUntil.Equal(was.CappedUntil) {
		return was, nil
	}
	now, err := s.put(ctx, tx, was, next, changed, by)
	if err != nil {
		return now, err
	}
	return now, tx.Audit(ctx, by, "schedule.update", "schedule:"+id, map[string]any{"name": now.Name, "enabled": now.Enabled, "cron": now.Cron, "timezone": now.Timezone})
}

// put stores a schedule that is held, and plans it anew if it changed.
func (s *Service) put(ctx context.Context, tx *store.Tx, was, next schedulestore.Schedule, changed bool, by string) (schedulestore.Schedule, error) {
	id := was.ID
	if err := s.passDisabled(ctx, tx, was); err != nil {
		return schedulestore.Schedule{}, err
	}
	now, err := schedulestore.In(tx).UpdateSchedule(ctx, next, changed, by)
	if err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := s.notePause(ctx, tx, was, now, by); err != nil {
		return schedulestore.Schedule{}, err
	}
	if err := s.declareTerms(ctx, tx, was, now); err != nil {
		return schedulestore.Schedule{}, err
	}
	if changed {
		if err := s.exclude(ctx, tx, now); err != nil {
			return schedulestore.Schedule{}, err
		}
		as, why := run.DispositionSuperseded, "The schedule was changed."
		if was.Enabled && !now.Enabled {
			as, why = run.DispositionSkippedDisabled, "The schedule was disabled."
		}
		if err := s.supersede(ctx, tx, was, as, why); err != nil {
			return schedulestore.Schedule{}, err
		}
		if err := s.chain(ctx, tx, now, tx.Now, false); err != nil {
			return schedulestore.Schedule{}, err
		}
	}
	settle := s.settleLane
	if !was.CappedUntil.IsZero() && now.CappedUntil.IsZero() {
		settle = s.settleContinued
	}
	if err := settle(ctx, tx, id); err != nil {
		return schedulestore.Schedule{}, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(id, now.Name), What: "updated"})
	return schedulestore.In(tx).GetSchedule(ctx, id)
}

func merged(s schedulestore.Schedule, in client.SchedulePatch) schedulestore.Schedule {
	set := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	set(&s.Name, in.Name)
	if in.GraphID != nil && work.Is(s.GraphID) {
		s.Input = json.RawMessage("{}") // what was is no input of a graph
	}
	set(&s.GraphID, in.GraphID)
	mergeTiming(&s, in.Cron, in.TimingPatch)
	set(&s.Timezone, in.Timezone)
	set(&s.GrantID, in.ExecutionGrantID)
	if len(in.Input) > 0 {
		s.Input = in.Input
	}
	if in.ConcurrencyPolicy != nil {
		s.Policy = string(*in.ConcurrencyPolicy)
	}
	if in.Enabled != nil {
		s.Enabled = *in.Enabled
	}
	if in.Labels != nil {
		s.Labels = *in.Labels
	}
	if in.Run != nil {
		s.GraphID, s.Input = work.Graph(*in.Run)
	}
	rules := RulesOf(s)
	if in.Idempotent != nil {
		rules.Idempotent = *in.Idempotent
	}
	if in.Missed != nil {
		rules.Missed = in.Missed
	}
	if in.Retry != nil {
		rules.Retry = in.Retry
	}
	mergeTerms(&rules.Terms, in)
	s.Rules = rules.store()
	return s
}

// sameRules reports whether two schedules do slots again in the same way.
func sameRules(a, b schedulestore.Schedule) bool {
	x, y := RulesOf(a), RulesOf(b)
	x.Terms, y.Terms = Terms{}, Terms{}
	return reflect.DeepEqual(x, y)
}

// regrant finds the grant of a schedule whose graph or grant changed. One that
// was made for the old graph alone is replaced by one for the new graph.
func (s *Service) regrant(ctx context.Context, tx *store.Tx, was, next schedulestore.Schedule) (string, error) {
	if next.GrantID != was.GrantID || was.GrantID == "" {
		return s.grantFor(ctx, tx, next)
	}
	g, err := s.cfg.Grants.Get(ctx, tx, was.OwnerUserID, was.GrantID)
	if err != nil {
		return "", err
	}
	if !g.Automatic && work.Is(next.GraphID) {
		return "", nil
	}
	if !g.Automatic {
		return g.ID, badGrant(grant.Check(g, next.GraphID, tx.Now))
	}
	if _, err := s.cfg.Grants.Revoke(ctx, tx, was.OwnerUserID, g.ID); err != nil {
		return "", err
	}
	next.GrantID = ""
	return s.grantFor(ctx, tx, next)
}

// supersede ends what waits of a schedule as it was: the slots that have not
// begun, and the instants that came due while one ran.
func (s *Service) supersede(ctx context.Context, tx *store.Tx, was schedulestore.Schedule, as run.Disposition, why string) error {
	open, err := schedulestore.In(tx).OpenSlots(ctx, was.ID, 1000)
	if err != nil {
		return err
	}
	for _, slot := range open {
		if run.SlotStatus(slot.Status) != run.SlotPending || slot.Trigger != triggerSchedule {
			continue
		}
		if _, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, skipped(as, "", why)); err != nil {
			return err
		}
	}
	if !was.Enabled {
		return nil
	}
	schedule, err := s.timesOf(ctx, tx, was)
	if err != nil {
		return err
	}
	after, err := lastSlot(ctx, tx, was)
	if err != nil {
		return err
	}
	due, _, err := s.dueSince(ctx, tx, was.ID, schedule, after, tx.Now, nil)
	if err != nil {
		return err
	}
	return s.passOver(ctx, tx, was, following{passed: due, disposition: as, words: why})
}

// Delete takes a schedule out of use, in the caller's transaction: nothing of it
// starts any more, a grant that was made for it is revoked, and its slots stay
// for whoever asks what happened.
func (s *Service) Delete(ctx context.Context, tx *store.Tx, ownerID, id, by string) (revoked bool, err error) {
	if _, err := s.Owned(ctx, tx, ownerID, id); err != nil {
		return false, err
	}
	sch, err := schedulestore.In(tx).HoldSchedule(ctx, id)
	if err != nil {
		return false, err
	}
	if err := s.supersede(ctx, tx, sch, run.DispositionSkippedDisabled, "The schedule was deleted."); err != nil {
		return false, err
	}
	if err := schedulestore.In(tx).DeleteSchedule(ctx, id); err != nil {
		return false, err
	}
	if err := s.endAllWaiting(ctx, tx, id); err != nil {
		return false, err
	}
	if err := s.cfg.Needs.Declare(ctx, tx, pawl.KindSchedule, id, nil); err != nil {
		return false, err
	}
	var g grant.Grant
	if sch.GrantID != "" {
		if g, err = s.cfg.Grants.Get(ctx, tx, sch.OwnerUserID, sch.GrantID); err != nil {
			return false, err
		}
	}
	if g.Automatic {
		if _, err := s.cfg.Grants.Revoke(ctx, tx, sch.OwnerUserID, g.ID); err != nil {
			return false, err
		}
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(id, sch.Name), What: "deleted"})
	return g.Automatic, tx.Audit(ctx, by, "schedule.delete", "schedule:"+id, map[string]string{"name": sch.Name})
}

// endAllWaiting ends the slots of a schedule that was deleted which have begun
// and wait for a person or for another attempt.
func (s *Service) endAllWaiting(ctx context.Context, tx *store.Tx, id string) error {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, id)
	if err != nil {
		return err
	}
	running, err := schedulestore.In(tx).RunningSlots(ctx, id, 1000)
	if err != nil {
		return err
	}
	for _, slot := range running {
		ended, err := s.endWaiting(ctx, tx, sch, slot, "The schedule was deleted.")
		if err != nil {
			return err
		}
		if key := pawl.SlotKey(id, slot.ScheduledFor); ended {
			tx.AfterCommit(func() { go s.cancelElsewhere(context.WithoutCancel(ctx), key) })
		}
	}
	return nil
}

// Why a run now is refused.
const (
	ReasonRunActive = "run_active"
	ReasonPaused    = lane.ReasonPaused
)

// RunNow makes a slot of this instant, in the caller's transaction. It is
// refused while the schedule is switched off, and while a slot runs or waits
// unless the policy allows that.
func (s *Service) RunNow(ctx context.Context, tx *store.Tx, ownerID, id, by string) (schedulestore.Slot, error) {
	const op = "run schedule"
	if err := lane.RefuseHalted(ctx, tx, op); err != nil {
		return schedulestore.Slot{}, err
	}
	if _, err := s.Owned(ctx, tx, ownerID, id); err != nil {
		return schedulestore.Slot{}, err
	}
	sch, err := schedulestore.In(tx).HoldSchedule(ctx, id)
	if err != nil {
		return schedulestore.Slot{}, err
	}
	if !sch.Enabled {
		return schedulestore.Slot{}, refuseDisabled(ctx, tx, op, sch)
	}
	open, err := schedulestore.In(tx).OpenSlots(ctx, id, 100)
	if err != nil {
		return schedulestore.Slot{}, err
	}
	for _, slot := range open {
		if mayOverlap(sch) || run.SlotStatus(slot.Status) == run.SlotPending && slot.ScheduledFor.After(tx.Now) {
			continue
		}
		if waitsFresh(slot) {
			return schedulestore.Slot{}, lane.Refuse(op, ReasonRunActive, fmt.Sprintf("a slot of schedule %q waits for a source", sch.Name), "It starts when that was fetched; pawl why schedule "+sch.Name+" tells more.")
		}
		return schedulestore.Slot{}, lane.Refuse(op, ReasonRunActive, fmt.Sprintf("a run of schedule %q is active", sch.Name), "Wait until it has ended.")
	}
	at := tx.Now
	if err := s.setApart(ctx, tx, id, at); err != nil { // a clock that went back
		return schedulestore.Slot{}, err
	}
	for made := int64(0); made == 0; at = at.Add(time.Millisecond) {
		if made, err = schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: id, ScheduledFor: at, Revision: sch.Revision, Trigger: triggerManual}); err != nil {
			return schedulestore.Slot{}, err
		}
		if made > 0 {
			break
		}
	}
	if err := tx.Audit(ctx, by, "schedule.run", "schedule:"+id, nil); err != nil {
		return schedulestore.Slot{}, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(id, sch.Name), What: "requested", Detail: SlotDetail{Slot: client.At(at)}})
	if err := s.arm(ctx, tx, sch, at, tx.Now); err != nil {
		return schedulestore.Slot{}, err
	}
	return schedulestore.In(tx).GetSlot(ctx, id, at)
}
