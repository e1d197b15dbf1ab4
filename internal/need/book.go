// Package need makes lanes wait for the sources that they need.
//
// A definition says which sources must be fresh before something of its lane starts.
// Who is about to start asks Stale, which reads and nothing else. If a source is too
// old, Wait writes in the transaction of the start that did not happen: the lane
// waits, and the source is asked to fetch. The end of a whole fetch calls Fetched in
// its own transaction, which lets every lane that waits look again:
//
//	start ── Stale ── none ─────────────────────────────► it begins
//	            │
//	            └── some ── Wait (holds the source) ──► waits_since, a request, the job of the lane at its deadline
//	                                                       ▲
//	fetch ── last page and commit ── Fetched ──────────────┘ the job of the lane, now
//
// Wait holds the row in which the end of a fetch is noted and judges once more. So a
// fetch that ends at the same moment is either seen by Wait, or sees who waits. What
// wakes a lane is a job, committed with what it tells; so no crash loses it, and what
// is woken twice looks twice and starts once.
package need

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/needstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// Source is the kind whose lanes are needed.
type Source interface {
	// ShareNeeded fails with pawl.ErrNotFound if there is no such source, and keeps
	// it from being deleted until the transaction ends.
	ShareNeeded(ctx context.Context, tx *store.Tx, name string) error
	// LastFetched is when the last whole fetch of a source ended, zero if none did, and
	// whether a person has paused it.
	LastFetched(ctx context.Context, tx *store.Tx, name string) (last time.Time, paused bool, err error)
	// HoldFetched is when the last whole fetch ended, and no fetch ends until the transaction does.
	HoldFetched(ctx context.Context, tx *store.Tx, name string) (time.Time, error)
	// AskToFetch asks a source to fetch now, unless it is about to. What keeps it
	// from that is a sentence, and no error.
	AskToFetch(ctx context.Context, tx *store.Tx, name, by string) (hindrance string, err error)
	// Names reads up to limit names.
	Names(ctx context.Context, tx *store.Tx, owner string, limit int) ([]string, error)
}

// User is a kind whose lanes need sources.
type User interface {
	Kind() pawl.Kind
	// Freshened lets a lane look again that waits for a source.
	Freshened(ctx context.Context, tx *store.Tx, lane string) error
	// NeedingName is what a lane is called, such as schedule nightly; empty if the
	// owner may not know of it. An empty owner may know of all.
	NeedingName(ctx context.Context, tx *store.Tx, lane, owner string) (string, error)
}

// Book knows who needs what. The zero Book is ready to use: it has no sources.
type Book struct {
	source Source
	users  map[pawl.Kind]User
	db     *store.DB
	jobs   lane.Jobs
}

// Provide makes the kind known whose lanes are needed.
func (b *Book) Provide(s Source) { b.source = s }

// Use makes a kind known whose lanes need sources.
func (b *Book) Use(u User) {
	if b.users == nil {
		b.users = map[pawl.Kind]User{}
	}
	b.users[u.Kind()] = u
}

// Attach gives the book what it wakes many lanes with.
func (b *Book) Attach(db *store.DB, jobs lane.Jobs) { b.db, b.jobs = db, jobs }

// mostSuggested is how many names are looked at for one that was mistyped.
const mostSuggested = 1000

// Check finds the sources that are not there, and keeps the others from being deleted
// until the transaction ends.
func (b *Book) Check(ctx context.Context, tx *store.Tx, list []client.Need) (faults []pawl.Field, err error) {
	for i, n := range list {
		if lane.Assumed(ctx, string(pawl.KindSource), n.Source) {
			continue
		}
		fault := func(hint string) {
			faults = append(faults, pawl.Field{Pointer: fmt.Sprintf("/needs/%d/source", i), Message: fmt.Sprintf("there is no source %s; %s", pawl.Quote(n.Source), hint)})
		}
		if b.source == nil {
			fault("There are none here.")
			continue
		}
		switch err := b.source.ShareNeeded(ctx, tx, n.Source); {
		case errors.Is(err, pawl.ErrNotFound):
			names, err := b.source.Names(ctx, tx, "", mostSuggested)
			if err != nil {
				return nil, err
			}
			fault(pawl.Suggest(n.Source, names, "Apply the source first, or together with this."))
		case err != nil:
			return nil, err
		}
	}
	return faults, nil
}

// Declare notes what a lane needs, instead of what it needed. It does not wait from
// then on.
func (b *Book) Declare(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string, list []client.Need) error {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.Source
	}
	return needstore.In(tx).Put(ctx, kind, lane, names)
}

// Stale are the needed sources that are too old. It only reads.
func (b *Book) Stale(ctx context.Context, tx *store.Tx, list []client.Need) (stale []terms.Stale, err error) {
	for _, n := range list {
		if b.source == nil {
			return nil, nil
		}
		last, paused, err := b.source.LastFetched(ctx, tx, n.Source)
		if err := pawl.IgnoreNotFound(err); err != nil {
			return nil, err
		}
		if s, old := judge(n, last, tx.Now); old {
			s.Paused = paused
			stale = append(stale, s)
		}
	}
	return stale, nil
}

func judge(n client.Need, last, now time.Time) (terms.Stale, bool) {
	return terms.Stale{Need: n, Last: last}, last.IsZero() || now.Sub(last) > terms.MaxAgeOf(n)
}

// Waiting are those of the stale sources for which a lane waits. It only reads.
func (b *Book) Waiting(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string, list []client.Need) ([]terms.Stale, error) {
	rows, err := needstore.In(tx).Of(ctx, kind, lane)
	if err != nil || !slices.ContainsFunc(rows, func(r needstore.Row) bool { return !r.Since.IsZero() }) {
		return nil, err
	}
	stale, err := b.Stale(ctx, tx, list)
	if err != nil {
		return nil, err
	}
	var waits []terms.Stale
	for _, s := range stale {
		for _, r := range rows {
			if r.Source == s.Source && !r.Since.IsZero() {
				s.Since = r.Since
				waits = append(waits, s)
			}
		}
	}
	return waits, nil
}

// Waited reports whether a lane waited for a source at an instant, in its last wait
// that a fetch ended. A wait that began within the grace after it counts.
func (b *Book) Waited(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string, at time.Time, grace time.Duration) (bool, error) {
	rows, err := needstore.In(tx).Of(ctx, kind, lane)
	return slices.ContainsFunc(rows, func(r needstore.Row) bool {
		return !r.Waited.IsZero() && !r.Waited.After(at.Add(grace)) && !r.Until.Before(at)
	}), err
}

// Wait makes a lane wait for the sources that are too old, and asks them to fetch, in
// the caller's transaction. None are left if they were fetched a moment ago.
func (b *Book) Wait(ctx context.Context, tx *store.Tx, of lane.Ref, laneOf string, list []client.Need) (stale []terms.Stale, err error) {
	inOrder := slices.SortedFunc(slices.Values(list), func(x, y client.Need) int { return cmp.Compare(x.Source, y.Source) }) // as everybody who holds several
	for _, n := range inOrder {
		if b.source == nil {
			return nil, nil
		}
		last, err := b.source.HoldFetched(ctx, tx, n.Source)
		if err := pawl.IgnoreNotFound(err); err != nil {
			return nil, err
		}
		if s, old := judge(n, last, tx.Now); old {
			stale = append(stale, s)
		}
	}
	for i := range stale {
		s := &stale[i]
		if s.Since, err = needstore.In(tx).Wait(ctx, s.Source, of.Kind, laneOf); err != nil {
			return nil, err
		}
		switch s.Why, err = b.source.AskToFetch(ctx, tx, s.Source, string(of.Kind)+" "+of.Name); {
		case errors.Is(err, pawl.ErrNotFound): // somebody took it out of the database
			s.Why = "There is no source " + s.Source + " any more."
		case err != nil:
			return nil, err
		}
	}
	return stale, nil
}

// StopWaiting takes back that a lane waits.
func (b *Book) StopWaiting(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string) error {
	return needstore.In(tx).StopWaiting(ctx, kind, lane)
}

// wakeBatch is how many lanes are woken in one transaction.
const wakeBatch = 100

// TaskName is the task that wakes the rest of very many lanes.
const TaskName = "pawl.needs"

type payload struct {
	Source string `json:"source"`
}

// Fetched lets the lanes look again that wait for a source, in the transaction that
// ends its fetch.
func (b *Book) Fetched(ctx context.Context, tx *store.Tx, source string) error {
	more, err := b.wake(ctx, tx, source)
	if err != nil || !more {
		return err
	}
	raw, err := json.Marshal(payload{source})
	if err != nil {
		return err
	}
	_, err = b.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: TaskName, Payload: raw, RunAt: tx.Now, Key: TaskName + ":" + source, KeyMode: store.Earliest})
	return err
}

// wake wakes some lanes, and reports whether there may be more.
func (b *Book) wake(ctx context.Context, tx *store.Tx, source string) (more bool, err error) {
	list, err := needstore.In(tx).EndWaits(ctx, source, wakeBatch)
	if err != nil {
		return false, err
	}
	for _, r := range list {
		u := b.users[r.Kind]
		if u == nil {
			continue // of a kind that this process does not know
		}
		if err := pawl.IgnoreNotFound(u.Freshened(ctx, tx, r.Lane)); err != nil {
			return false, err
		}
	}
	return len(list) == wakeBatch, nil
}

// Task wakes lanes in parts, so that a fetch that very many wait for is committed
// without them.
func (b *Book) Task() queue.Task {
	return queue.Task{Internal: true, Backoff: lane.Backoff, Run: func(ctx context.Context, j *queue.Job) error {
		var p payload
		if err := json.Unmarshal(j.Payload, &p); err != nil || p.Source == "" {
			return queue.Permanent(&pawl.Error{Code: pawl.CodeInternal, Op: "wake lanes", Msg: "the job names no source", Err: err})
		}
		for more := true; more; {
			err := b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
				more, err = b.wake(ctx, tx, p.Source)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// mostNamed is how many of those that need a source a refusal names.
const mostNamed = 5

// ReasonNeeded is why a source is not deleted.
const ReasonNeeded = "source_needed"

// RefuseDelete refuses to delete a source that is needed, in the transaction that
// holds it. It names what the owner may know of.
func (b *Book) RefuseDelete(ctx context.Context, tx *store.Tx, source, owner string) error {
	list, all, err := needstore.In(tx).Needing(ctx, source, 10*mostNamed)
	if err != nil || all == 0 {
		return err
	}
	var names []string
	for _, r := range list {
		u := b.users[r.Kind]
		if u == nil || len(names) == mostNamed {
			continue
		}
		name, err := u.NeedingName(ctx, tx, r.Lane, owner)
		if err := pawl.IgnoreNotFound(err); err != nil {
			return err
		}
		if name != "" {
			names = append(names, name)
		}
	}
	switch others := all - len(names); others {
	case 0:
	case 1:
		names = append(names, "1 other")
	default:
		names = append(names, fmt.Sprintf("%d others", others))
	}
	return lane.Refuse("delete source", ReasonNeeded, fmt.Sprintf("the source %q is needed by %s", source, strings.Join(names, ", ")), "Take it out of their needs: first.")
}
