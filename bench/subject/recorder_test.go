package subject

import "testing"

func TestRecorderSeesOverlapInALane(t *testing.T) {
	r := NewRecorder(Batch{Count: 4, Lanes: 2})
	r.enterLane(0, 0)
	r.enterLane(1, 1)
	r.enterLane(0, 2)
	if got := r.Tally(); got.Overlaps != 1 || got.Disorder != 0 {
		t.Errorf("tally = %+v", got)
	}
}

func TestRecorderSeesDisorderInALane(t *testing.T) {
	r := NewRecorder(Batch{Count: 4, Lanes: 2})
	for _, seq := range []int{2, 1, 0, 3} {
		r.Handle(seq)
	}
	if got := r.Tally(); got.Disorder != 1 || got.Overlaps != 0 || got.Handled != 4 {
		t.Errorf("tally = %+v", got)
	}
}

func TestHotBatchLeavesTheOtherJobsInTheirLanes(t *testing.T) {
	even := Batch{Count: 100, Lanes: 10}
	hot := Batch{Count: 100, Lanes: 10, Hot: true}
	for i := range 100 {
		switch got := hot.Job(i).Lane; {
		case i%2 == 0 && got != HotLane:
			t.Errorf("job %d is in %s", i, got)
		case i%2 == 1 && got != even.Job(i).Lane:
			t.Errorf("job %d moved from %s to %s", i, even.Job(i).Lane, got)
		}
	}
}

func TestRecorderAllowsAsManyOfALaneAsAreAgreed(t *testing.T) {
	r := NewRecorder(Batch{Count: 8, Lanes: 2, PerLane: 2})
	for _, seq := range []int{0, 2, 1, 3} {
		r.enterLane(seq%2, seq)
	}
	if got := r.Tally(); got.Overlaps != 0 {
		t.Errorf("two of a lane are too many: %+v", got)
	}
	r.enterLane(0, 4)
	if got := r.Tally(); got.Overlaps != 1 {
		t.Errorf("three of a lane are not seen: %+v", got)
	}
}

func TestRecorderDoesNotCountWhatGoesOnBeside(t *testing.T) {
	r := NewRecorder(Batch{First: 10, Count: 2, Lanes: 2, Beside: 4, SlowMS: 1})
	for _, seq := range []int{6, 9, 10} {
		r.Handle(seq)
	}
	if got := r.Tally(); got.Handled != 1 || got.Strays != 0 {
		t.Errorf("tally = %+v", got)
	}
	r.Handle(5) // of nobody
	if got := r.Tally(); got.Strays != 1 {
		t.Errorf("a job of nobody is not seen: %+v", got)
	}
}

func TestOneLaneHoldsTheWholeBatch(t *testing.T) {
	b := Batch{Count: 10, Lanes: 3, OneLane: true}
	for i := range b.Count {
		if got := b.Job(i).Lane; got != HotLane {
			t.Errorf("job %d is in %q", i, got)
		}
	}
}
