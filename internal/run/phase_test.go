package run

import (
	"testing"

	"github.com/pawlrun/pawl"
)

func handlerTypes() []pawl.HandlerType {
	return []pawl.HandlerType{pawl.HandlerProducer, pawl.HandlerConsumer, pawl.HandlerSource, pawl.HandlerSchedule}
}

func allPhases() []pawl.Phase {
	return []pawl.Phase{
		pawl.PhaseExecuting, pawl.PhasePreparing, pawl.PhasePrepared, pawl.PhaseMutating, pawl.PhaseMutated,
		pawl.PhaseEmitting, pawl.PhaseFetching, pawl.PhaseValidating, pawl.PhaseCommitted,
	}
}

// the legal moves are exactly these.
func TestPhaseAdvancesOneStepOrSkipsAnEmptyMutation(t *testing.T) {
	type move struct {
		t        pawl.HandlerType
		from, to pawl.Phase
	}
	legal := map[move]bool{
		{pawl.HandlerProducer, pawl.PhaseExecuting, pawl.PhaseCommitted}:  true,
		{pawl.HandlerConsumer, pawl.PhasePreparing, pawl.PhasePrepared}:   true,
		{pawl.HandlerConsumer, pawl.PhasePrepared, pawl.PhaseMutating}:    true,
		{pawl.HandlerConsumer, pawl.PhasePrepared, pawl.PhaseEmitting}:    true,
		{pawl.HandlerConsumer, pawl.PhaseMutating, pawl.PhaseMutated}:     true,
		{pawl.HandlerConsumer, pawl.PhaseMutated, pawl.PhaseEmitting}:     true,
		{pawl.HandlerConsumer, pawl.PhaseEmitting, pawl.PhaseCommitted}:   true,
		{pawl.HandlerSource, pawl.PhaseFetching, pawl.PhaseCommitted}:     true,
		{pawl.HandlerSchedule, pawl.PhaseValidating, pawl.PhaseExecuting}: true,
		{pawl.HandlerSchedule, pawl.PhaseExecuting, pawl.PhaseCommitted}:  true,
	}
	for _, ht := range append(handlerTypes(), "", "other") {
		for _, from := range append(allPhases(), "", "other") {
			for _, to := range append(allPhases(), "", "other") {
				if got := CanAdvance(ht, from, to); got != legal[move{ht, from, to}] {
					t.Errorf("CanAdvance(%s, %s, %s) = %v", ht, from, to, got)
				}
			}
		}
	}
}

// what follows prepared depends on the reservations, and is legal.
func TestAfterPreparedSkipsTheMutationOfNothing(t *testing.T) {
	for reserved, want := range map[int]pawl.Phase{0: pawl.PhaseEmitting, 1: pawl.PhaseMutating, 100: pawl.PhaseMutating} {
		got := AfterPrepared(reserved)
		if got != want || !CanAdvance(pawl.HandlerConsumer, pawl.PhasePrepared, got) {
			t.Errorf("AfterPrepared(%d) = %s, want %s", reserved, got, want)
		}
	}
}

// the order is total within a type, and foreign phases compare as
// neither earlier nor later.
func TestPhaseOrderIsTotalWithinItsType(t *testing.T) {
	for _, ht := range append(handlerTypes(), "other") {
		for _, a := range allPhases() {
			for _, b := range allPhases() {
				both := Order(ht, a) >= 0 && Order(ht, b) >= 0
				before, atLeast := Before(ht, a, b), AtLeast(ht, a, b)
				if both && before == atLeast {
					t.Errorf("%s: Before(%s, %s) and AtLeast are both %v", ht, a, b, before)
				}
				if !both && (before || atLeast) {
					t.Errorf("%s: foreign phases %s, %s compare", ht, a, b)
				}
				if before != (both && Order(ht, a) < Order(ht, b)) {
					t.Errorf("%s: Before(%s, %s) = %v", ht, a, b, before)
				}
			}
		}
	}
}

// where a fresh run begins.
func TestFirstPhase(t *testing.T) {
	want := map[pawl.HandlerType]pawl.Phase{
		pawl.HandlerProducer: pawl.PhaseExecuting, pawl.HandlerConsumer: pawl.PhasePreparing,
		pawl.HandlerSource: pawl.PhaseFetching, pawl.HandlerSchedule: pawl.PhaseValidating, "other": "",
	}
	for ht, phase := range want {
		if got := FirstPhase(ht); got != phase {
			t.Errorf("FirstPhase(%s) = %q, want %q", ht, got, phase)
		}
	}
}

// applied is phase >= mutated, and only consumers mutate.
func TestMutationAppliedIsPhaseMutatedOrLater(t *testing.T) {
	applied := map[pawl.Phase]bool{pawl.PhaseMutated: true, pawl.PhaseEmitting: true, pawl.PhaseCommitted: true}
	for _, ht := range handlerTypes() {
		for _, p := range allPhases() {
			want := ht == pawl.HandlerConsumer && applied[p]
			if got := MutationApplied(ht, p); got != want {
				t.Errorf("MutationApplied(%s, %s) = %v", ht, p, got)
			}
		}
	}
}
