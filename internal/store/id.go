package store

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// idEpoch is 2024-01-01, so that ids stay short.
const idEpoch = 1704067200000

// idSource makes 63-bit ids that grow with time: 41 bits of milliseconds, 10
// of this process (random) and 12 of a counter. Two processes that drew the
// same number can collide; the primary key refuses that and the transaction
// runs again with new ids.
type idSource struct {
	mu     sync.Mutex
	node   int64 // guarded by mu
	lastMS int64 // guarded by mu
	seq    int64 // guarded by mu
}

// init draws the number of this process, again if another one has the same.
func (s *idSource) init() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = rand.Int64N(1<<10 - 1) // the last one is that of the database itself: see door.sql
}

// next never goes back, even when the clock does.
func (s *idSource) next(now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := now.UnixMilli() - idEpoch
	if t > s.lastMS {
		s.lastMS, s.seq = t, 0
	} else if s.seq++; s.seq == 1<<12 {
		s.lastMS++
		s.seq = 0
	}
	return s.lastMS<<22 | s.node<<12 | s.seq
}

// NewID makes the id of a row that people see: a UUID that sorts by time.
func NewID() string {
	if made := simulatedIDs.Load(); made != nil {
		return (*made)()
	}
	return uuid.Must(uuid.NewV7()).String()
}

// simulatedIDs takes the place of chance in NewID; see SimulateIDs.
var simulatedIDs atomic.Pointer[func() string] //nolint:gochecknoglobals // whoever makes an id has nothing else at hand

// SimulateIDs makes NewID do as it is told, in tests that are to repeat
// themselves; nil ends that.
func SimulateIDs(made func() string) {
	if made == nil {
		simulatedIDs.Store(nil)
		return
	}
	simulatedIDs.Store(&made)
}

// IDAt is the first number that NextID can have made at an instant.
func IDAt(t time.Time) int64 { return (t.UnixMilli() - idEpoch) << 22 }
