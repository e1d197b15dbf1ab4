package run

import (
	"fmt"

	"github.com/pawlrun/pawl"
)

// Walk returns the attempts of a chain from the newest to the first.
// If an earlier attempt cannot be read, or the links run in a circle, it
// returns what it has read so far together with the error.
func Walk(newest Run, lookup func(id string) (Run, error)) ([]Run, error) {
	chain := []Run{newest}
	seen := map[string]bool{newest.ID: true}
	for at := newest; at.RetryOf != ""; {
		if seen[at.RetryOf] {
			return chain, &pawl.Error{
				Code: pawl.CodeInternal, Op: "walk retry chain",
				Msg: fmt.Sprintf("run %s is among its own successors", at.RetryOf),
			}
		}
		earlier, err := lookup(at.RetryOf)
		if err != nil {
			return chain, fmt.Errorf("walk retry chain to run %s: %w", at.RetryOf, err)
		}
		seen[at.RetryOf] = true
		chain = append(chain, earlier)
		at = earlier
	}
	return chain, nil
}

// IsOpen reports whether the run still has to be resolved. A stopped run that
// has a successor is history, whatever its status says.
func IsOpen(r Run, hasSuccessor bool) bool {
	return !hasSuccessor && Open(r.Status) && !Settled(r.Type, r.Status)
}

// Halts reports whether the newest run of a lane keeps it from ordinary work
// . exhausted says that the budget of this run's status is used up.
//
// A workflow is halted by whatever is unresolved. A source is not: its
// retry state says when it may run. A schedule finishes its slot first, and
// goes on to the next one when the attempts are used up. A crash loop and a
// contradiction halt every kind.
func Halts(newest Run, exhausted bool) bool {
	switch {
	case newest.Status == "" || newest.Status == pawl.StatusActive:
		return false
	case Decide(newest).Halted():
		return true
	case !IsOpen(newest, false):
		return false
	case waitsForPeople(newest.Type):
		return true
	case newest.Status == pawl.StatusCrashed && exhausted:
		return true
	default:
		return newest.Type == pawl.HandlerSchedule && !exhausted
	}
}
