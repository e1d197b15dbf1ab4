package api

import (
	"context"
	"errors"
	"maps"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
)

// What a job or a schedule does is told to its owner and to those who administer
// jobs or schedules, as everywhere else; Pawl's own jobs, whose keys name things
// of others, to the latter alone. A job says whose it is. Of a schedule an event
// only knows the id, so whose it is is looked up before the first event of it is
// sent to anybody else. A schedule never changes hands, so that is remembered,
// and what is known to be another's is not even kept for a follower.

// subject is what an event tells of, as far as that decides who may know. The
// zero value may be known by anybody.
type subject struct {
	schedule string  // the id of the schedule that it tells of, if any
	job      *string // the owner of the job that it tells of, if any
}

func ofSchedule(id string) subject { return subject{schedule: id} }
func ofJob(owner string) subject   { return subject{job: &owner} }

// view is what a follower may see beside what anybody may.
type view struct {
	schedules string  // the user whose schedules; empty is all
	jobs      *string // the user whose jobs; nil is all, those of Pawl included
}

func sightFor(t *store.Token) view { return view{access.Reach(t, schedulesResource), jobsOf(t)} }

// ownersKnown is how many schedules a feed remembers the owners of.
const ownersKnown = 10_000

// sight is whether a follower may see an event.
type sight int

const (
	seen sight = iota
	unseen
	unclear // whose schedule it is must be looked up first
)

// sightOf judges an event for a follower. Feed.mu is held.
func (f *Feed) sightOf(to *follower, e feedEvent) sight {
	if j := e.about.job; j != nil && to.view.jobs != nil && *j != *to.view.jobs {
		return unseen
	}
	if to.view.schedules == "" || e.about.schedule == "" {
		return seen
	}
	switch owner, known := f.owners[e.about.schedule]; {
	case !known:
		return unclear
	case owner == to.view.schedules:
		return seen
	}
	return unseen
}

// unclear lists the schedules that must be known before all that waits for a
// follower can be taken.
func (f *Feed) unclear(to *follower) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, e := range to.waiting {
		if f.sightOf(to, e) == unclear && !slices.Contains(ids, e.about.schedule) {
			ids = append(ids, e.about.schedule)
		}
	}
	return ids
}

// learn notes the owners of schedules.
func (f *Feed) learn(owners map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owners == nil || len(f.owners)+len(owners) > ownersKnown {
		f.owners = map[string]string{}
	}
	maps.Copy(f.owners, owners)
}

// visible cuts what waits for a follower into what it may see now and what is
// left until it is known whose it is. Feed.mu is held.
func (f *Feed) visible(to *follower) (now, left []feedEvent) {
	for i, e := range to.waiting {
		switch f.sightOf(to, e) {
		case seen:
			now = append(now, e)
		case unclear:
			return now, to.waiting[i:]
		case unseen:
		}
	}
	return now, nil
}

// waiting renders what waits for a follower. While the database does not tell
// whose a schedule is, what it did waits on.
func (a *API) waiting(ctx context.Context, to *follower) []byte {
	if ids := a.feed.unclear(to); len(ids) > 0 {
		owners, err := a.ownersOf(ctx, ids)
		if err == nil {
			a.feed.learn(owners)
		} else if ctx.Err() == nil {
			a.log.Warn("look up the owners of schedules for a stream", "err", err)
		}
	}
	return a.feed.take(to)
}

// ownersOf reads whose schedules are; one that is not there is nobody's.
func (a *API) ownersOf(ctx context.Context, ids []string) (map[string]string, error) {
	owners := make(map[string]string, len(ids))
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range ids {
			s, err := tx.GetSchedule(ctx, id)
			if err != nil && !errors.Is(err, pawl.ErrNotFound) {
				return err
			}
			owners[id] = s.OwnerUserID
		}
		return nil
	})
	return owners, err
}
