package prune

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/prunestore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// walk is a way through rows of one kind: those of one lane, or those of all that
// have no age of their own.
type walk struct {
	kind retention.Kind
	part string         // of the kind; empty: all, or the main one
	of   pawl.Kind      // whose rows they are; empty: nobody's
	all  bool           // rows of every lane, also of those that have an age of their own
	only retention.Lane // zero: all
	age  time.Duration

	begin  time.Time     // nothing before it is looked at; zero: everything is
	rewalk time.Duration // after which it begins at its beginning; zero is as usual

	decide func(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error)
}

// span is what a step looks at: up to limit rows behind a place, before the cut.
type span struct {
	walk
	from  prunestore.Place
	cut   time.Time
	limit int
}

// step is what was decided about a few rows.
type step struct {
	next    prunestore.Place // of the last one that was looked at
	end     bool             // there are no more before the cut
	removed []Removed
	gone    []string                                          // ids of what is removed, as far as another walk asks whether it is there
	remove  func(ctx context.Context, tx prunestore.Tx) error // nil: there is nothing to remove
}

func (w walk) name() string {
	name := string(w.kind)
	if w.part != "" {
		name += " (" + w.part + ")"
	}
	if w.of != "" {
		name += " of " + string(w.of)
	}
	if w.only.Lane != "" {
		name += " " + w.only.Lane
	}
	return name
}

// takes reports whether a row of a lane is this walk's.
func (w walk) takes(p *pass, l retention.Lane) bool {
	if w.only.Lane != "" {
		return l == w.only
	}
	_, own := p.policy.Lanes[l][w.kind]
	return w.all || !own
}

// walks are all ways, in an order in which what refers to others goes first.
func (p *pass) walks() (list []walk) {
	add := func(w walk) {
		more := w.age // than that of the kind
		w.age = later(p.policy.All[w.kind], more)
		list = append(list, w)
		for _, l := range p.policy.Special(w.kind) {
			if l.Kind == w.of {
				w.only, w.age = l, later(p.policy.Lanes[l][w.kind], more)
				list = append(list, w)
			}
		}
	}
	kinds := []pawl.Kind{pawl.KindWorkflow, pawl.KindSource, pawl.KindSchedule}
	add(walk{kind: retention.JobHistory, decide: decideJobs})
	add(walk{kind: retention.Reads, of: pawl.KindWorkflow, decide: decideReads})
	// Answers are walked through by their ids, all of them whatever the lane: nothing
	// refers to those that are removed. Each is judged by the age of its lane.
	list = append(list, walk{kind: retention.Reads, part: "contents", all: true, of: pawl.KindWorkflow, age: p.shortest(retention.Reads), decide: decideContents})
	for _, kind := range kinds[:2] { // a slot of a schedule always does something
		add(walk{kind: retention.IdleRuns, of: kind, rewalk: idleRewalk, decide: decideIdle})
		list = append(list, p.foldWalk(kind))
		// Its age is that of its first run; so none is passed by before its last is old.
		add(walk{kind: retention.IdleRuns, part: "folded", of: kind, age: runstore.LongestStretch, decide: decideFolded})
	}
	add(walk{kind: retention.Events, of: pawl.KindWorkflow, decide: decideEvents})
	for _, kind := range kinds {
		add(walk{kind: retention.Logs, of: kind, decide: decideLogs})
	}
	add(walk{kind: retention.Rejects, of: pawl.KindSource, decide: decideRejects})
	add(walk{kind: retention.Mutations, of: pawl.KindWorkflow, decide: decideMutations})
	add(walk{kind: retention.Receipts, decide: decideReceipts})
	add(walk{kind: retention.Slots, of: pawl.KindSchedule, decide: decideSlots})
	for _, kind := range kinds {
		add(walk{kind: retention.Runs, of: kind, decide: decideRuns})
	}
	add(walk{kind: retention.Audit, decide: decideAudit})
	return list
}

func later(age, more time.Duration) time.Duration {
	if age == retention.Forever {
		return age
	}
	return age + more
}

// longest is the longest age of a kind that anybody has set, but for ever.
func (p *pass) longest(k retention.Kind) time.Duration {
	age := p.policy.All[k]
	for _, l := range p.policy.Special(k) {
		age = max(age, p.policy.Lanes[l][k])
	}
	return age
}

// shortest is the shortest age of a kind that anybody has set.
func (p *pass) shortest(k retention.Kind) time.Duration {
	age := p.policy.All[k]
	for _, l := range p.policy.Special(k) {
		if own := p.policy.Lanes[l][k]; own != retention.Forever && (age == retention.Forever || own < age) {
			age = own
		}
	}
	return age
}

// step decides about the next rows.
func (p *pass) step(ctx context.Context, at span) (s step, err error) {
	err = p.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err = at.decide(ctx, prunestore.In(tx), p, at)
		return err
	})
	return s, err
}

// id is the id of the lane that is walked through; empty: all.
func (at span) id(p *pass) string {
	if at.only.Lane == "" {
		return ""
	}
	return p.known[at.only].ID
}
