package run

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
)

func lookupIn(runs map[string]Run) func(string) (Run, error) {
	return func(id string) (Run, error) {
		r, ok := runs[id]
		if !ok {
			return Run{}, pawl.ErrNotFound
		}
		return r, nil
	}
}

func ids(chain []Run) []string {
	var out []string
	for _, r := range chain {
		out = append(out, r.ID)
	}
	return out
}

// the chain is read from the newest to the first attempt.
func TestWalkReadsNewestToFirst(t *testing.T) {
	runs := map[string]Run{"a": {ID: "a"}, "b": {ID: "b", RetryOf: "a"}}
	chain, err := Walk(Run{ID: "c", RetryOf: "b"}, lookupIn(runs))
	if err != nil || !slices.Equal(ids(chain), []string{"c", "b", "a"}) {
		t.Errorf("Walk = %v, %v", ids(chain), err)
	}
}

// what is missing is reported, and what was read is not lost.
func TestWalkReportsAMissingAttempt(t *testing.T) {
	chain, err := Walk(Run{ID: "c", RetryOf: "b"}, lookupIn(map[string]Run{"b": {ID: "b", RetryOf: "a"}}))
	if !errors.Is(err, pawl.ErrNotFound) || !slices.Equal(ids(chain), []string{"c", "b"}) {
		t.Errorf("Walk = %v, %v", ids(chain), err)
	}
}

// Walk ends for any links at all, visits each run once, and says so when
// they run in a circle.
func TestWalkEndsForAnyLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "runs")
		runs := map[string]Run{}
		for i := range n {
			link := rapid.IntRange(-1, n-1).Draw(t, "link")
			r := Run{ID: strconv.Itoa(i)}
			if link >= 0 {
				r.RetryOf = strconv.Itoa(link)
			}
			runs[r.ID] = r
		}
		chain, err := Walk(runs["0"], lookupIn(runs))
		seen := map[string]bool{}
		for i, r := range chain {
			if seen[r.ID] || (i > 0 && chain[i-1].RetryOf != r.ID) {
				t.Fatalf("bad chain %v", ids(chain))
			}
			seen[r.ID] = true
		}
		circle := seen[chain[len(chain)-1].RetryOf]
		if circle != (err != nil) || (circle && pawl.ErrorCode(err) != pawl.CodeInternal) {
			t.Fatalf("chain %v: error %v", ids(chain), err)
		}
	})
}

// a run with a successor is history; a run that is over is not open; a
// schedule's recorded failure expects nothing.
func TestOpenMeansUnresolvedWithoutSuccessor(t *testing.T) {
	for _, ht := range handlerTypes() {
		for _, s := range append(pawl.Statuses(), "other") {
			r := Run{Type: ht, Status: s}
			want := s != pawl.StatusCommitted && s != pawl.StatusCancelled && s != "other"
			if ht == pawl.HandlerSchedule && (s == pawl.StatusFailedLogic || s == pawl.StatusFailedInternal) {
				want = false
			}
			if got := IsOpen(r, false); got != want {
				t.Errorf("IsOpen(%s %s) = %v", ht, s, got)
			}
			if IsOpen(r, true) {
				t.Errorf("%s %s is open although it has a successor", ht, s)
			}
		}
	}
}

// what keeps a lane from ordinary work.
func TestHaltingPerKind(t *testing.T) {
	first := map[pawl.HandlerType]pawl.Phase{}
	for _, ht := range handlerTypes() {
		first[ht] = FirstPhase(ht)
	}
	first[pawl.HandlerConsumer] = pawl.PhaseMutating
	type row struct{ workflow, source, schedule, spentSource, spentSchedule bool }
	tests := map[pawl.Status]row{
		pawl.StatusActive:          {},
		pawl.StatusCancelled:       {},
		pawl.StatusPausedTransient: {workflow: true, schedule: true},
		pawl.StatusFailedLogic:     {workflow: true},
		pawl.StatusFailedInternal:  {workflow: true},
		pawl.StatusPausedApproval:  {workflow: true, schedule: true},
		pawl.StatusCrashed:         {workflow: true, schedule: true, spentSource: true, spentSchedule: true},
	}
	for s, want := range tests {
		at := func(ht pawl.HandlerType) Run { return Run{Type: ht, Phase: first[ht], Status: s} }
		for _, ht := range []pawl.HandlerType{pawl.HandlerProducer, pawl.HandlerConsumer} {
			if Halts(at(ht), false) != want.workflow || Halts(at(ht), true) != want.workflow {
				t.Errorf("Halts(%s %s) is not %v", ht, s, want.workflow)
			}
		}
		got := row{
			want.workflow, Halts(at(pawl.HandlerSource), false), Halts(at(pawl.HandlerSchedule), false),
			Halts(at(pawl.HandlerSource), true), Halts(at(pawl.HandlerSchedule), true),
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
	}
	if Halts(Run{}, true) {
		t.Error("a lane that never ran is halted")
	}
	if !Halts(consumer(pawl.PhaseMutating, pawl.StatusPausedReconciliation, needs), false) {
		t.Error("an open call does not halt its workflow")
	}
	if Halts(consumer(pawl.PhaseCommitted, pawl.StatusCommitted, applied), false) {
		t.Error("a committed run halts its lane")
	}
	if !Halts(consumer(pawl.PhaseEmitting, pawl.StatusCancelled, applied), false) {
		t.Error("a contradiction does not halt its lane")
	}
}
