package relay

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// channel is where nodes tell each other what to look for.
const channel = "pawl_relay"

const (
	// gather is how long a node collects what happens before it tells.
	gather = 50 * time.Millisecond

	// wantEvery is how often a node says that it is followed, and wantFor how long
	// others believe it.
	wantEvery = 5 * time.Second
	wantFor   = 3 * wantEvery

	// forgetAfter is how long what was told can be read.
	forgetAfter = 30 * time.Second

	// roomBytes is how much waits to be told at most, and batchBytes how much is
	// told at once.
	roomBytes  = 4 << 20
	batchBytes = 512 << 10

	// hearAtOnce is how many rows are read at once, and mostUnheard how many may
	// wait for that.
	hearAtOnce  = 16
	mostUnheard = 1024

	// mostEnded is how many jobs wait to be told that ended. Of more than that
	// nobody is told: who waits for one looks every now and then.
	mostEnded = 20_000

	// mostNodes is how many nodes can be known to be followed.
	mostNodes = 1000

	silence = 3 * time.Second
)

// Event is a change as a feed tells it: of which thing, who may know, and what.
type Event struct {
	Kind string          `json:"kind"`
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`

	LaneKind string  `json:"laneKind,omitempty"` // the owned lane that it tells of
	LaneKey  string  `json:"laneKey,omitempty"`
	Owner    *string `json:"owner,omitempty"` // of the job that it tells of
}

// News is what one node tells the others.
type News struct {
	Events []Event  `json:"events,omitempty"`
	Lanes  []string `json:"lanes,omitempty"` // that pages should look at again
	Ended  []int64  `json:"ended,omitempty"` // jobs of users whose end somebody may wait for
	Lost   int      `json:"lost,omitempty"`  // events for which there was no room
}

// Wants is what those on a node follow.
type Wants struct{ Events, Lanes, Ends bool }

// Config is what a relay is made of.
type Config struct {
	DB  *store.DB
	Log *slog.Logger
	// Wanted tells what is followed on this node.
	Wanted func() Wants
	// Heard is given what other nodes tell.
	Heard func(News)
}

// Relay is the part of one node.
type Relay struct {
	cfg  Config
	node string // of this process, chosen anew at each start

	events, lanes, ends atomic.Bool // other nodes want them

	mu      sync.Mutex
	wanted  map[string]want // by node; guarded by mu
	news    News            // to be told; guarded by mu
	size    int             // of its events, in bytes; guarded by mu
	unheard []string        // rows to be read; guarded by mu
	missed  bool            // more was said than could be heard; guarded by mu

	tell, hear, ask chan struct{} // each has room for one
}

// want is what a node wants, and until when it is believed.
type want struct {
	Wants
	until time.Time
}

// New makes a relay. It does nothing before Run.
func New(cfg Config) *Relay {
	return &Relay{
		cfg: cfg, node: store.NewID(), wanted: map[string]want{},
		tell: make(chan struct{}, 1), hear: make(chan struct{}, 1), ask: make(chan struct{}, 1),
	}
}

// WantsEvents reports whether somebody on another node follows events.
func (r *Relay) WantsEvents() bool { return r != nil && r.events.Load() }

// Event passes a change on to the other nodes. It never waits.
func (r *Relay) Event(e Event) {
	if !r.WantsEvents() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size+len(e.Data) > roomBytes {
		r.news.Lost++
		return
	}
	r.size += len(e.Data)
	r.news.Events = append(r.news.Events, e)
	nudge(r.tell)
}

// Lane passes on that something about a lane changed. It never waits.
func (r *Relay) Lane(name string) {
	if r == nil || !r.lanes.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.news.Lanes, name) && len(r.news.Lanes) < mostUnheard {
		r.news.Lanes = append(r.news.Lanes, name)
	}
	nudge(r.tell)
}

// Ended passes on that a job has ended. It never waits.
func (r *Relay) Ended(id int64) {
	if r == nil || !r.ends.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.news.Ended) < mostEnded {
		r.news.Ended = append(r.news.Ended, id)
	}
	nudge(r.tell)
}

// Followed makes the relay tell the others that something is followed here now.
func (r *Relay) Followed() {
	if r != nil {
		nudge(r.ask)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is going to
	}
}

// Run tells and hears until the context ends.
func (r *Relay) Run(ctx context.Context) {
	if !r.cfg.DB.Shared() {
		return
	}
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){r.listen, r.askAgain, r.tellAll, r.hearAll} {
		wg.Go(func() { part(ctx) })
	}
	wg.Wait()
}

// A message is one of these, with the node that sends it.
const (
	msgHello = "hello" // it has begun to listen: who is followed?
	msgWant  = "want"  // what is followed there
	msgTold  = "told"  // the id of a row
)

func (r *Relay) say(ctx context.Context, words ...string) error {
	return r.cfg.DB.Notify(ctx, channel, strings.Join(append([]string{r.node}, words...), " "))
}

// listen hears what the others say. What they said while it could not hear is
// lost, and those who follow are told so.
func (r *Relay) listen(ctx context.Context) {
	first := true
	for ctx.Err() == nil {
		err := r.listenOnce(ctx, func() {
			if !first {
				r.cfg.Heard(News{Lost: 1})
			}
			first = false
			nudge(r.ask)
			if err := r.say(ctx, msgHello); err != nil && ctx.Err() == nil {
				r.cfg.Log.Debug("greet the other nodes", "err", err) // they say it again by themselves
			}
		})
		if ctx.Err() == nil {
			r.cfg.Log.Debug("listen to the other nodes", "err", err) // the queue warns of the same
			wait(ctx, time.Second)
		}
	}
}

func (r *Relay) listenOnce(ctx context.Context, ready func()) error {
	link, err := r.cfg.DB.OpenLink(ctx)
	if err != nil {
		return err
	}
	defer link.Close()
	return link.Listen(ctx, channel, silence, ready, r.heard)
}

// heard takes a message. Anybody can have sent it.
func (r *Relay) heard(message string) {
	words := strings.Split(message, " ")
	if len(words) < 2 || len(message) > 200 || words[0] == r.node {
		return
	}
	switch from, rest := words[0], words[2:]; {
	case words[1] == msgHello:
		nudge(r.ask)
	case words[1] == msgWant:
		r.note(from, Wants{Events: slices.Contains(rest, "events"), Lanes: slices.Contains(rest, "lanes"), Ends: slices.Contains(rest, "ends")})
	case words[1] == msgTold && len(rest) == 1:
		r.mu.Lock()
		if len(r.unheard) < mostUnheard {
			r.unheard = append(r.unheard, rest[0])
		} else {
			r.missed = true
		}
		r.mu.Unlock()
		nudge(r.hear)
	}
}

// note keeps what another node wants.
func (r *Relay) note(node string, w Wants) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.wanted[node]; known || len(r.wanted) < mostNodes {
		r.wanted[node] = want{w, time.Now().Add(wantFor)}
	}
	r.judge(time.Now())
}

// judge says what any other node wants. Relay.mu is held.
func (r *Relay) judge(now time.Time) {
	var any Wants
	for node, w := range r.wanted {
		if !w.until.After(now) {
			delete(r.wanted, node)
			continue
		}
		any.Events, any.Lanes, any.Ends = any.Events || w.Events, any.Lanes || w.Lanes, any.Ends || w.Ends
	}
	r.events.Store(any.Events)
	r.lanes.Store(any.Lanes)
	r.ends.Store(any.Ends)
}

// askAgain tells the others what is followed here, as long as something is, and
// once when nothing is any more.
func (r *Relay) askAgain(ctx context.Context) {
	tick := time.NewTicker(wantEvery)
	defer tick.Stop()
	var said Wants
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ask:
		case <-tick.C:
		}
		r.mu.Lock()
		r.judge(time.Now())
		r.mu.Unlock()
		w := r.cfg.Wanted()
		if w == (Wants{}) && said == w {
			continue
		}
		words := []string{msgWant}
		if w.Events {
			words = append(words, "events")
		}
		if w.Lanes {
			words = append(words, "lanes")
		}
		if w.Ends {
			words = append(words, "ends")
		}
		if err := r.say(ctx, words...); err != nil {
			continue // said again in a moment
		}
		said = w
	}
}

// tellAll tells the others what happened here.
func (r *Relay) tellAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.tell:
		}
		wait(ctx, gather)
		for ctx.Err() == nil {
			news, more := r.take()
			if err := r.sayNews(ctx, news); err != nil {
				if ctx.Err() == nil {
					r.cfg.Log.Debug("tell the other nodes what happened", "err", err)
				}
				r.mu.Lock()
				r.news.Lost += news.Lost + len(news.Events)
				r.mu.Unlock()
				wait(ctx, time.Second)
			}
			if !more {
				break
			}
		}
	}
}

// take gives what is to be told next, and whether there is more.
func (r *Relay) take() (news News, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, size := 0, 0
	for n < len(r.news.Events) && (n == 0 || size+len(r.news.Events[n].Data) <= batchBytes) {
		size += len(r.news.Events[n].Data)
		n++
	}
	news = News{Events: r.news.Events[:n:n], Lanes: r.news.Lanes, Ended: r.news.Ended, Lost: r.news.Lost}
	r.news = News{Events: r.news.Events[n:]}
	r.size -= size
	return news, len(r.news.Events) > 0
}

func (r *Relay) sayNews(ctx context.Context, news News) error {
	if len(news.Events) == 0 && len(news.Lanes) == 0 && len(news.Ended) == 0 && news.Lost == 0 {
		return nil
	}
	content, err := json.Marshal(news)
	if err != nil {
		return err
	}
	id := store.NewID()
	if err := r.cfg.DB.Say(ctx, id, string(content), forgetAfter); err != nil {
		return err
	}
	return r.say(ctx, msgTold, id)
}

// hearAll reads what the others told.
func (r *Relay) hearAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hear:
		}
		for ctx.Err() == nil {
			r.mu.Lock()
			n := min(len(r.unheard), hearAtOnce)
			ids, missed := r.unheard[:n:n], r.missed
			r.unheard, r.missed = r.unheard[n:], false
			r.mu.Unlock()
			if missed {
				r.cfg.Heard(News{Lost: 1})
			}
			if n == 0 {
				break
			}
			if r.cfg.Wanted() == (Wants{}) {
				continue // told to others
			}
			contents, err := r.cfg.DB.Hear(ctx, ids)
			if err != nil {
				r.cfg.Heard(News{Lost: 1})
				continue
			}
			for _, content := range contents {
				var news News
				if err := json.Unmarshal([]byte(content), &news); err == nil {
					r.cfg.Heard(news)
				}
			}
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
