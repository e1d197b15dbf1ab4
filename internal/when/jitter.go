package when

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Jitter is by how much starts are spread; zero: not at all.
func (s Schedule) Jitter() time.Duration { return s.jitter }

// Before is the schedule without its instants from end on.
func (s Schedule) Before(end time.Time) Schedule {
	if s.end.IsZero() || end.Before(s.end) {
		s.end = end
	}
	return s
}

// Leap goes from an instant of an interval to a later one that is not after end, in
// one step: so far that still keep others follow up to end. It returns that one and
// how many lie on the way, itself included. The count is zero where instants must be
// looked at one by one, or no more than keep are left.
func (s Schedule) Leap(at, end time.Time, keep int) (last time.Time, count int64) {
	if s.Kind() != KindInterval || s.jitter > 0 || len(s.days.spans) > 0 || len(s.except) > 0 || at.Before(s.from) {
		return at, 0
	}
	if !s.end.IsZero() && !end.Before(s.end) {
		end = s.end.Add(-time.Nanosecond)
	}
	count = int64(end.Sub(at)/s.interval) - int64(keep)
	if count < 1 {
		return at, 0
	}
	return at.Add(time.Duration(count) * s.interval), count
}

// Start is when the instant of a schedule starts: later by its jitter, which is
// the same in every process and less than the time to the next instant, so that
// starts keep their order.
func (s Schedule) Start(at time.Time) time.Time {
	if s.jitter <= 0 {
		return at
	}
	room := s.jitter
	if next, ok := s.Next(at); ok {
		room = min(room, next.Sub(at))
	}
	h := fnv.New64a()
	var instant [8]byte
	binary.LittleEndian.PutUint64(instant[:], uint64(at.UnixMilli())) //nolint:gosec // only its bits count
	_, _ = h.Write([]byte(s.seed))                                    // it never fails
	_, _ = h.Write(instant[:])
	return at.Add(time.Duration(spread(h.Sum64())%uint64(room/time.Millisecond)) * time.Millisecond) //nolint:gosec // positive
}

// spread makes each bit of a hash depend on all others: neighbouring instants
// differ in few.
func spread(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
