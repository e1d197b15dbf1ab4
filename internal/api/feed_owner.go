package api

import (
	"context"
	"maps"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// What a job or an owned lane does is told to its owner and to those who
// administer jobs or lanes of the kind, as everywhere else; Pawl's own jobs, whose
// keys name things of others, to the latter alone. A job says whose it is. Of a
// lane an event only knows the key, so whose it is is looked up before the first
// event of it is sent to anybody else. A lane never changes hands, so that is
// remembered, and what is known to be another's is not even kept for a follower.

// subject is what an event tells of, as far as that decides who may know. The
// zero value may be known by anybody.
type subject struct {
	lane laneKey // the owned lane that it tells of, if any
	job  *string // the owner of the job that it tells of, if any
}

// laneKey names an owned lane.
type laneKey struct {
	kind pawl.Kind
	key  string
}

func ofLane(l lane.Ref) subject {
	if !l.Owned {
		return subject{}
	}
	return subject{lane: laneKey{l.Kind, l.Key}}
}

func ofJob(owner string) subject { return subject{job: &owner} }

// view is what a follower may see beside what anybody may.
type view struct {
	lanes map[pawl.Kind]string // the user whose lanes of a kind; empty is all
	jobs  *string              // the user whose jobs; nil is all, those of Pawl included
}

func (a *API) sightFor(t *userstore.Token) view {
	lanes := map[pawl.Kind]string{}
	for _, k := range a.kinds {
		lanes[k.Kind()] = access.Reach(t, resourceOf(k.Kind()))
	}
	return view{lanes, jobsOf(t)}
}

// ownersKnown is how many lanes a feed remembers the owners of.
const ownersKnown = 10_000

// sight is whether a follower may see an event.
type sight int

const (
	seen sight = iota
	unseen
	unclear // whose lane it is must be looked up first
)

// sightOf judges an event for a follower. Feed.mu is held.
func (f *Feed) sightOf(to *follower, e feedEvent) sight {
	if j := e.about.job; j != nil && to.view.jobs != nil && *j != *to.view.jobs {
		return unseen
	}
	of := e.about.lane
	viewer := to.view.lanes[of.kind]
	if viewer == "" || of.key == "" {
		return seen
	}
	switch owner, known := f.owners[of]; {
	case !known:
		return unclear
	case owner == viewer:
		return seen
	}
	return unseen
}

// unclear lists the schedules that must be known before all that waits for a
// follower can be taken.
func (f *Feed) unclear(to *follower) []laneKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []laneKey
	for _, e := range to.waiting {
		if f.sightOf(to, e) == unclear && !slices.Contains(keys, e.about.lane) {
			keys = append(keys, e.about.lane)
		}
	}
	return keys
}

// learn notes the owners of schedules.
func (f *Feed) learn(owners map[laneKey]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owners == nil || len(f.owners)+len(owners) > ownersKnown {
		f.owners = map[laneKey]string{}
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
// whose a lane is, what it did waits on.
func (a *API) waiting(ctx context.Context, to *follower) []byte {
	if keys := a.feed.unclear(to); len(keys) > 0 {
		owners, err := a.ownersOf(ctx, keys)
		if err == nil {
			a.feed.learn(owners)
		} else if ctx.Err() == nil {
			a.log.Warn("look up the owners of lanes for a stream", "err", err)
		}
	}
	return a.feed.take(to)
}

// ownersOf reads whose lanes are; one that is not there is nobody's.
func (a *API) ownersOf(ctx context.Context, keys []laneKey) (map[laneKey]string, error) {
	owners := make(map[laneKey]string, len(keys))
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, of := range keys {
			k, ok := a.kinds.Get(of.kind)
			if !ok {
				continue
			}
			owner, err := k.OwnerOf(ctx, tx, of.key)
			if err := pawl.IgnoreNotFound(err); err != nil {
				return err
			}
			owners[of] = owner
		}
		return nil
	})
	return owners, err
}
