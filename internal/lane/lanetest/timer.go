// Package lanetest has a small kind of lanes for tests: timers, which only count.
// It shows what a kind needs to be listed, explained, on the timeline and in the
// stream, and nothing of Pawl knows it.
package lanetest

import (
	"context"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/when"
)

// Kind is what timers are called.
const Kind pawl.Kind = "timer"

// Timers are lanes that come due at an interval, by name.
type Timers struct {
	lane.Host
	DB    *store.DB
	Every map[string]when.Schedule

	jobs lane.Jobs
}

var _ lane.Kind = (*Timers)(nil)

func refOf(name string) lane.Ref { return lane.Named(Kind, name) }

// Kind implements lane.Kind, and so do all others.
func (t *Timers) Kind() pawl.Kind { return Kind }

func (t *Timers) lane(name string) lane.Lane {
	return lane.Lane{Ref: refOf(name), ID: name, State: run.Idle, Schedule: t.Every[name].Describe(), LastText: "Defined"}
}

// List gives them in no pages.
func (t *Timers) List(_ context.Context, q lane.Query) (page []lane.Lane, next lane.Place, err error) {
	for name := range t.Every {
		if l := t.lane(name); q.Fits(&l) && strings.Contains(name, q.Text) && name > q.After.Name {
			page = append(page, l)
		}
	}
	return page, next, nil
}

// Names of timers.
func (t *Timers) Names(context.Context, *store.Tx, string, int) (names []string, err error) {
	for name := range t.Every {
		names = append(names, name)
	}
	return names, nil
}

// Count says that all are idle.
func (t *Timers) Count(context.Context, *store.Tx, string) (map[string]int, error) {
	return map[string]int{string(run.Idle): len(t.Every)}, nil
}

// Why says that time passes.
func (t *Timers) Why(_ context.Context, _ lane.Viewer, name string, _ time.Time) (lane.Why, error) {
	if _, ok := t.Every[name]; !ok {
		return lane.Why{}, &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no timer " + name}
	}
	return lane.Why{Lane: t.lane(name), At: time.Now(), Next: "It counts.", Gates: []lane.Gate{{Name: "due", Text: "Time passes."}}}, nil
}

// Due is all of them.
func (t *Timers) Due(context.Context, string, time.Time, int) (list []lane.Due, more bool, err error) {
	for name, every := range t.Every {
		list = append(list, lane.Due{Ref: refOf(name), Schedule: every})
	}
	return list, false, nil
}

// Repeats by the interval.
func (t *Timers) Repeats(_ context.Context, _ *store.Tx, l *lane.Lane) ([]lane.Due, error) {
	return []lane.Due{{Ref: l.Ref, Schedule: t.Every[l.Name]}}, nil
}

// LaneOf a run is its name.
func (t *Timers) LaneOf(r *runstore.Run) lane.Ref { return refOf(r.Lane) }

// Find runs by the name.
func (t *Timers) Find(_ context.Context, _ *store.Tx, _ lane.Viewer, name string) (runstore.RunFilter, bool, error) {
	_, ok := t.Every[name]
	return runstore.RunFilter{Kind: Kind, Lane: name}, ok, nil
}

// OwnerOf a timer is everybody.
func (t *Timers) OwnerOf(context.Context, *store.Tx, string) (string, error) { return "", nil }

// Actions are none.
func (t *Timers) Actions(context.Context, *store.Tx, *runstore.Run) ([]lane.Action, error) {
	return nil, nil
}

// CancelRun is refused.
func (t *Timers) CancelRun(context.Context, *store.Tx, runstore.Run, string) (runstore.Run, error) {
	return runstore.Run{}, lane.Refuse("cancel run", "timer", "a timer does not end", "")
}

// Tasks are one: a tick.
func (t *Timers) Tasks() map[string]queue.Task {
	return map[string]queue.Task{"timer.tick": {Internal: true, Backoff: lane.Backoff, Run: func(context.Context, *queue.Job) error { return nil }}}
}

// Standing is a tick.
func (t *Timers) Standing() []store.JobSpec { return []store.JobSpec{lane.StandingJob("timer.tick")} }

// Attach keeps the queue.
func (t *Timers) Attach(jobs lane.Jobs) { t.jobs = jobs }

// Touch tells that something happened to a timer.
func (t *Timers) Touch(ctx context.Context, name string) error {
	return t.DB.Write(ctx, func(_ context.Context, tx *store.Tx) error {
		t.Emit(tx, lane.Change{Ref: refOf(name), What: "touched", Detail: map[string]int{"hands": 2}})
		return nil
	})
}
