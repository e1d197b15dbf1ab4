package execution

import (
	"time"

	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// move is what to do about a key that is known.
type move int

const (
	moveRefuse move = iota // the key was used for another request
	moveAnswer             // there is an outcome, or a question to a person
	moveWait               // somebody executes it
	moveTake               // nobody does any more: go on with it
	moveAgain              // it failed, and a later attempt is asked for
)

// judge decides what a request with this hash and attempt means for what is
// stored under its key.
//
// A stored outcome stands, failures included, until a later attempt is asked
// for by its number. One whose outcome nobody knows stands for good: only a
// person may have it started again, with another key.
func judge(e executionstore.Execution, hash string, attempt int, now time.Time) (move, error) {
	m, err := memoryOf(e)
	switch {
	case err != nil:
		return 0, err
	case e.Hash != hash && e.Hash != "": // none: a person had it opened for another request
		return moveRefuse, nil
	case e.Finished && !e.Outcome.OK && attempt > e.Attempt && !m.Unknown:
		return moveAgain, nil
	case e.Finished, e.Interrupt != nil:
		return moveAnswer, nil
	case e.Alive(now):
		return moveWait, nil
	}
	return moveTake, nil
}
