package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/relay"
	"github.com/pawlrun/pawl/internal/store"
)

// Feed hands what happens, in this process and as far as a relay tells in others,
// to whoever follows it. Publishing never waits: a follower that is slow loses its
// oldest events and is told how many. While nobody follows, publishing costs two
// atomic reads.
//
// Events have growing numbers. The last ones are remembered, so that a follower
// whose connection broke can go on where it stopped; for that the feed listens
// for a minute after the last one left.
type Feed struct {
	awake atomic.Bool  // there are followers, or were a moment ago
	relay *relay.Relay // tells other nodes; nil: there are none
	waits jobWaits     // requests that wait for the end of a job

	mu        sync.Mutex
	next      int64              // number of the next event; guarded by mu
	recent    []feedEvent        // the last ones, oldest first; guarded by mu
	floor     int64              // events up to this number are not remembered; guarded by mu
	followers []*follower        // guarded by mu
	owners    map[laneKey]string // of lanes, as far as they are known; guarded by mu
	closed    bool               // guarded by mu
	end       chan struct{}      // closed by Close
	sleep     *time.Timer        // puts the feed to sleep; guarded by mu
}

// feedEvent is one event, ready to be sent.
type feedEvent struct {
	number int64
	kind   string
	id     string // of the thing that changed
	data   []byte

	about subject
}

// follower is one stream.
type follower struct {
	kinds []string // empty follows all
	id    string   // empty follows all
	view  view
	wake  chan struct{}
	place int64 // what it has seen when it begins: up to this number

	waiting []feedEvent // guarded by Feed.mu
	lost    int         // guarded by Feed.mu
	atLeast bool        // more may have been lost than is known; guarded by Feed.mu
}

const (
	feedMemory   = 1024 // events that a broken connection can catch up with, at least
	followerRoom = 256  // events that wait for a follower
	feedLinger   = time.Minute
)

// NewFeed makes a feed. Its numbers go on from those of an earlier process,
// because they begin with the time.
func NewFeed() *Feed {
	n := time.Now().UnixMicro()
	return &Feed{next: n, floor: n - 1, end: make(chan struct{}), waits: jobWaits{every: waitLook}}
}

// publish tells of a change: the kind of thing, which one, who may know, and
// what.
func (f *Feed) publish(kind, id string, about subject, data any) {
	if !f.wanted() {
		return
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return // only our own types come here, and they can be JSON
	}
	f.relay.Event(relay.Event{Kind: kind, ID: id, Data: raw, LaneKind: string(about.lane.kind), LaneKey: about.lane.key, Owner: about.job})
	if f.awake.Load() {
		f.hand(kind, id, about, raw)
	}
}

// hand gives an event to those who follow here.
func (f *Feed) hand(kind, id string, about subject, raw []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := feedEvent{f.next, kind, id, raw, about}
	f.next++
	if len(f.recent) == 2*feedMemory { // forgotten in bulk, which is cheaper
		f.floor = f.recent[feedMemory-1].number
		f.recent = slices.Clone(f.recent[feedMemory:])
	}
	f.recent = append(f.recent, e)
	for _, to := range f.followers {
		f.give(to, e)
	}
}

// Observe tells of what happens to jobs; it is made for queue.Config.
func (f *Feed) Observe(e queue.Event) {
	if store.JobState(e.What).Ended() {
		f.jobEnded(&e.Job)
	}
	if !f.wanted() {
		return
	}
	r := store.JobRecord{Job: e.Job, State: stateAfter(e), LastError: e.Err}
	switch e.What {
	case "started":
		r.StartedAt = e.At
	case "succeeded", "failed", "cancelled":
		r.FinishedAt = e.At
		r.Attempt++
	case "retried":
		r.Attempt++
	}
	f.jobChanged(e.What, &r, e.At, e.Err)
}

// stateAfter is the state that an event leaves a job in.
func stateAfter(e queue.Event) store.JobState {
	switch e.What {
	case "started":
		return store.JobRunning
	case "succeeded", "failed", "cancelled":
		return store.JobState(e.What)
	case "retried", "snoozed":
		return store.JobScheduled
	}
	if e.Job.RunAt.After(e.At) {
		return store.JobScheduled
	}
	return store.JobPending
}

// jobChanged leaves the payload out: it can be large, and an event is held in
// memory for every follower.
func (f *Feed) jobChanged(what string, r *store.JobRecord, at time.Time, failure string) {
	j := jobOf(r)
	j.Payload = nil
	f.publish("job", j.ID, ofJob(r.Owner), client.JobEvent{What: what, Job: j, At: client.At(at), Error: client.NullString(failure)})
}

// Close ends all streams; there will be no others.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	close(f.end)
	f.awake.Store(false)
	if f.sleep != nil {
		f.sleep.Stop()
	}
}

// follow adds a follower that begins after the event of that number, or with
// the next one if it is zero. It reports false when the feed is closed; how many
// there can be is for access.Keeper to say.
func (f *Feed) follow(view view, kinds []string, id string, after int64) (*follower, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false
	}
	to := &follower{kinds: kinds, id: id, view: view, wake: make(chan struct{}, 1)}
	if f.sleep != nil {
		f.sleep.Stop()
	}
	if !f.awake.Swap(true) {
		f.relay.Followed()
	}
	f.followers = append(f.followers, to)
	if after == 0 {
		to.place = f.next - 1
		return to, true
	}
	to.place = after
	if after < f.floor || after >= f.next { // of before our memory, or of nobody
		to.atLeast = true
		to.lost = 1
	}
	for _, e := range f.recent {
		if e.number > after {
			f.give(to, e)
		}
	}
	return to, true
}

// leave removes a follower.
func (f *Feed) leave(from *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers = slices.DeleteFunc(f.followers, func(x *follower) bool { return x == from })
	if len(f.followers) == 0 && !f.closed {
		f.sleep = time.AfterFunc(feedLinger, f.fallAsleep)
	}
}

// fallAsleep forgets. The skipped number stands for all that nobody saw.
func (f *Feed) fallAsleep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.followers) > 0 || f.closed {
		return
	}
	f.awake.Store(false)
	f.recent, f.owners = nil, nil
	f.floor = f.next
	f.next++
}

// give adds an event to those that wait. Feed.mu is held.
func (f *Feed) give(to *follower, e feedEvent) {
	if f.sightOf(to, e) == unseen || (to.id != "" && to.id != e.id) || (len(to.kinds) > 0 && !slices.Contains(to.kinds, e.kind)) {
		return
	}
	if len(to.waiting) == followerRoom {
		to.waiting = slices.Delete(to.waiting, 0, 1)
		to.lost++
	}
	to.waiting = append(to.waiting, e)
	select {
	case to.wake <- struct{}{}:
	default:
	}
}

// take renders what waits for a follower, up to the first event of which it is
// not known yet whether it may see it.
func (f *Feed) take(to *follower) []byte {
	f.mu.Lock()
	waiting, left := f.visible(to)
	lost, atLeast := to.lost, to.atLeast
	to.waiting, to.lost, to.atLeast = left, 0, false
	f.mu.Unlock()
	var b strings.Builder
	if lost > 0 {
		b.WriteString("event: dropped\ndata: " + `{"count":` + strconv.Itoa(lost) + `,"atLeast":` + strconv.FormatBool(atLeast) + "}\n\n")
	}
	for _, e := range waiting {
		b.WriteString("id: " + strconv.FormatInt(e.number, 10) + "\nevent: " + e.kind + "\ndata: ")
		b.Write(e.data)
		b.WriteString("\n\n")
	}
	return []byte(b.String())
}
