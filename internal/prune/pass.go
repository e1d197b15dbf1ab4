package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

// Options are how a pass is made. The zero value removes everything that is too
// old, and goes on until it has.
type Options struct {
	// Dry removes nothing and tells what would be.
	Dry bool
	// Budget is how long it may take; zero is as long as it needs.
	Budget time.Duration
	// Rest pauses after each step for a multiple of the time that it took, so that others
	// hardly wait; else it pauses for as long as it took.
	Rest bool
	// Anew begins every walk at its beginning.
	Anew bool
}

// Removed is what was removed, or would be, of one kind and lane.
type Removed struct {
	Kind   retention.Kind
	Lane   retention.Lane // zero: what belongs to no lane
	Name   string         // of the lane, for people; empty: none
	Rows   int64
	Bytes  int64 // about; of content
	Oldest time.Time
}

// Result is what a pass did.
type Result struct {
	Removed []Removed // by kind and lane
	More    bool      // it ran out of time before its end
	Leapt   bool      // the clock was not where it was expected
	Given   int64     // bytes that were given back to the disk
}

// Rows is how many rows there were in all.
func (r Result) Rows() (n int64) {
	for _, x := range r.Removed {
		n += x.Rows
	}
	return n
}

// Bytes is about how large they were.
func (r Result) Bytes() (n int64) {
	for _, x := range r.Removed {
		n += x.Bytes
	}
	return n
}

// pass is one pass through everything.
type pass struct {
	*Service
	o      Options
	clock  retention.Clock
	policy retention.Policy
	known  map[retention.Lane]prunestore.Lane // by what runs call it, and by its id
	lanes  map[retention.Lane]*laneFacts
	floors map[string]prunestore.Floor
	open   map[handler]prunestore.Run // the last run of a handler that others may be folded into; zero: none
	sums   map[sumKey]*Removed
	gone   map[string]bool // of a dry pass: what earlier walks would have removed
	given  map[string]bool // of a dry pass: answers of runs that keep what they read
	begun  time.Time
	now    time.Time
}

type sumKey struct {
	kind retention.Kind
	lane retention.Lane
}

// laneFacts are what is asked once in a pass about a lane.
type laneFacts struct {
	newest prunestore.Run
	script prunestore.Script
	good   map[string]map[string]bool // by handler, as far as asked: the runs that a proposal is tried with
}

// Prune makes a pass.
func (s *Service) Prune(ctx context.Context, o Options) (Result, error) {
	p := &pass{Service: s, o: o, lanes: map[retention.Lane]*laneFacts{}, open: map[handler]prunestore.Run{}, sums: map[sumKey]*Removed{}, gone: map[string]bool{}, given: map[string]bool{}, begun: time.Now()}
	leapt, err := p.begin(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("prune: %w", err)
	}
	if leapt {
		s.log.WarnContext(ctx, "the clock leapt; nothing becomes older by it", "clock", p.clock.At)
	}
	more := false
	for _, w := range p.walks() {
		end, err := p.walk(ctx, w)
		if err != nil {
			return Result{}, fmt.Errorf("prune %s: %w", w.kind, err)
		}
		more = more || !end
	}
	given, end, err := p.giveBack(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("give space back: %w", err)
	}
	if !o.Dry {
		s.remeasure()
	}
	return Result{Removed: p.total(), More: more || !end, Leapt: leapt, Given: given}, nil
}

// begin looks at the clock and reads what holds for the whole pass.
func (p *pass) begin(ctx context.Context) (leapt bool, err error) {
	read := func(ctx context.Context, tx *store.Tx) (err error) {
		p.now = tx.Now
		in := prunestore.In(tx)
		if p.o.Dry {
			if p.clock, err = readClock(ctx, in); err == nil {
				p.clock, _, leapt = p.clock.Look(tx.Now)
			}
		} else if p.clock, leapt, err = look(ctx, in); err == nil && p.o.Anew {
			err = in.DropFloors(ctx)
		}
		if err != nil {
			return err
		}
		if p.floors, err = in.Floors(ctx); err != nil {
			return err
		}
		lanes, err := in.Lanes(ctx)
		if err != nil {
			return err
		}
		p.policy, p.known = retention.Policy{All: p.keep, Lanes: map[retention.Lane]retention.Ages{}}, map[retention.Lane]prunestore.Lane{}
		for _, l := range lanes {
			p.known[retention.Lane{Kind: l.Kind, Lane: l.Lane}], p.known[retention.Lane{Kind: l.Kind, Lane: l.ID}] = l, l
			if l.Keep == "" {
				continue
			}
			ages, err := retention.ParseLane(strings.Split(l.Keep, ","))
			if err != nil { // another release wrote it; until it is understood nothing of the lane goes
				ages = retention.Untouched()
				p.log.WarnContext(ctx, "what a lane keeps cannot be read; nothing of it is removed", "kind", l.Kind, "lane", l.Name, "err", err)
			}
			p.policy.Lanes[retention.Lane{Kind: l.Kind, Lane: l.Lane}] = ages
		}
		if p.o.Dry {
			return nil
		}
		return p.forgetFloors(ctx, in)
	}
	if p.o.Dry {
		return leapt, p.db.Read(ctx, read)
	}
	err = p.db.Write(ctx, read)
	return leapt, err
}

// forgetFloors forgets how far walks have come that are made no longer: those of
// lanes that are deleted, or have no ages of their own any more.
func (p *pass) forgetFloors(ctx context.Context, in prunestore.Tx) error {
	made := map[string]bool{}
	for _, w := range p.walks() {
		made[w.name()] = true
	}
	for name := range p.floors {
		if made[name] {
			continue
		}
		if err := in.DropFloor(ctx, name); err != nil {
			return err
		}
		delete(p.floors, name)
	}
	return nil
}

// laneOf is the lane of a row, by what its table calls it; one that is deleted is
// called by that.
func (p *pass) laneOf(kind pawl.Kind, key string) retention.Lane {
	l := retention.Lane{Kind: kind, Lane: key}
	if known, ok := p.known[l]; ok {
		l.Lane = known.Lane
	}
	return l
}

const (
	mostRows  = 500 // that a step looks at
	fewRows   = 16
	stepTime  = 8 * time.Millisecond // that a step should take at most
	restTimes = 3                    // as long as a step took, it rests
)

// walk goes from the floor to the cut. It reports whether it came to the end.
func (p *pass) walk(ctx context.Context, w walk) (end bool, err error) {
	cut := p.clock.Cut(w.age)
	if cut.IsZero() {
		return true, nil
	}
	floor, known := p.floors[w.name()]
	if !known || p.o.Dry || p.now.Sub(floor.Since).Abs() > cmp.Or(w.rewalk, rewalk) {
		floor = prunestore.Floor{Since: p.now}
	}
	if begin := store.Millis(w.begin); !w.begin.IsZero() && floor.At < begin {
		floor.Place = prunestore.Place{At: begin}
	}
	for {
		if p.o.Budget > 0 && time.Since(p.begun) > p.o.Budget {
			return false, nil
		}
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		began := time.Now()
		s, err := p.step(ctx, span{w, floor.Place, cut, p.rows(w.name())})
		if err != nil {
			return false, err
		}
		if !s.end {
			floor.Place = s.next
		}
		err = p.remove(ctx, w, s, floor)
		if errors.Is(err, store.ErrSetRefused) { // another pass did it meanwhile
			clear(p.open)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		took := time.Since(began)
		p.adapt(w.name(), took)
		if s.end {
			return true, nil
		}
		if err := p.rest(ctx, took); err != nil {
			return false, err
		}
	}
}

// remove does what a step decided, and notes how far the walk has come.
func (p *pass) remove(ctx context.Context, w walk, s step, floor prunestore.Floor) error {
	if !p.o.Dry && (s.remove != nil || !s.end) {
		if err := p.cfg.fault("before " + string(w.kind)); err != nil {
			return err
		}
		err := p.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			if s.remove != nil {
				if err := s.remove(ctx, prunestore.In(tx)); err != nil {
					return err
				}
			}
			return prunestore.In(tx).SetFloor(ctx, w.name(), floor)
		}, store.Lazy)
		if err != nil {
			return err
		}
		if err := p.cfg.fault("after " + string(w.kind)); err != nil {
			return err
		}
	}
	for _, r := range s.removed {
		p.count(r)
	}
	if p.o.Dry {
		for _, id := range s.gone {
			p.gone[id] = true
		}
	}
	return nil
}

func (p *pass) count(r Removed) {
	if !p.o.Dry {
		p.removed.WithLabelValues(string(r.Kind)).Add(float64(r.Rows))
		p.freed.WithLabelValues(string(r.Kind)).Add(float64(r.Bytes))
	}
	sum := p.sums[sumKey{r.Kind, r.Lane}]
	if sum == nil {
		r.Name = cmp.Or(p.known[r.Lane].Name, r.Lane.Lane)
		p.sums[sumKey{r.Kind, r.Lane}] = &r
		return
	}
	sum.Rows, sum.Bytes = sum.Rows+r.Rows, sum.Bytes+r.Bytes
	if r.Oldest.Before(sum.Oldest) {
		sum.Oldest = r.Oldest
	}
}

func (p *pass) total() []Removed {
	kinds := retention.Kinds()
	out := make([]Removed, 0, len(p.sums))
	for _, r := range p.sums {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Removed) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Lane.Kind, b.Lane.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// rows is how many rows, or pages, the next step of something looks at.
func (p *pass) rows(of string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.size[of]; n > 0 {
		return n
	}
	return fewRows * 4
}

// adapt makes steps smaller that take long, and larger that do not.
func (p *pass) adapt(of string, took time.Duration) {
	n := p.rows(of)
	switch {
	case took > stepTime:
		n = max(fewRows, n/2)
	case took < stepTime/3:
		n = min(mostRows, n*2)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size[of] = n
}

// rest lets others write after a step; longer if it took longer, as it does while they
// are busy. Whoever asked for the pass waits for it, so that it rests less.
func (p *pass) rest(ctx context.Context, took time.Duration) error {
	switch {
	case p.o.Dry:
		return nil
	case p.o.Rest:
		took *= restTimes
	}
	return rest(ctx, took)
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// facts are what is asked once about a lane.
func (p *pass) facts(ctx context.Context, tx *store.Tx, l retention.Lane) (*laneFacts, error) {
	if f := p.lanes[l]; f != nil {
		return f, nil
	}
	f := &laneFacts{good: map[string]map[string]bool{}}
	var err error
	if f.newest, _, err = prunestore.In(tx).NewestRun(ctx, l.Kind, l.Lane); err != nil {
		return nil, err
	}
	if l.Kind == pawl.KindWorkflow {
		if f.script, err = prunestore.In(tx).ScriptOf(ctx, l.Lane); err != nil {
			return nil, err
		}
	}
	p.lanes[l] = f
	return f, nil
}

// needs reports whether a run of a handler is needed by a rule: it is the newest of its
// lane, or one that a proposal is tried with.
func (p *pass) needs(ctx context.Context, tx *store.Tx, l retention.Lane, handler, id string) (bool, error) {
	f, err := p.facts(ctx, tx, l)
	if err != nil || f.newest.ID == id || !f.script.Handlers[handler] {
		return err == nil && f.newest.ID == id, err
	}
	good, asked := f.good[handler]
	if !asked {
		if good, err = prunestore.In(tx).GoodRuns(ctx, f.script.WorkflowID, l.Lane, handler, retention.GoodRuns); err != nil {
			return false, err
		}
		f.good[handler] = good
	}
	return good[id], nil
}
