package demo

import (
	"context"
	"errors"
	"sync"
	"time"
)

// scene plays one promise of Pawl.
type scene struct {
	name    string
	promise string

	// play gives the server work, waits for it, and says what it saw. Its
	// error is a promise that was broken.
	play func(ctx context.Context, s *stage) (seen string, err error)
}

// scenes are all scenes, in the order in which they are summed up.
func scenes() []scene {
	return []scene{onTime(), orders(), oneAtATime(), replaced(), healed(), guarded(), letters(), prices(), poems(), lostAnswer(), approval()}
}

// outcome is how a scene ended.
type outcome struct {
	scene scene
	seen  string
	err   error
}

// cutShort reports whether the demo ended before the scene did.
func (o outcome) cutShort() bool { return errors.Is(o.err, errEnded) }

// errEnded ends scenes that are still playing when the demo ends.
var errEnded = errors.New("the demo ended")

// roundLimit bounds a round. The scenes need about 15 seconds.
const roundLimit = 45 * time.Second

// playRound plays all scenes at once and returns how they ended.
func playRound(ctx context.Context, s *stage) tally {
	ctx, cancel := context.WithTimeoutCause(ctx, roundLimit, errors.New("it took too long"))
	defer cancel()
	list := scenes()
	outcomes := make(tally, len(list))
	var playing sync.WaitGroup
	for i, sc := range list {
		playing.Go(func() {
			seen, err := sc.play(ctx, s)
			outcomes[i] = outcome{sc, seen, err}
		})
	}
	playing.Wait()
	return outcomes
}
