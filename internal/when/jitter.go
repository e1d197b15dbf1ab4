package when

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// Jitter returns how long after its slot a lane should start, so that lanes
// with the same slot do not start together. The result is a whole number of
// milliseconds, the precision in which instants are stored, and in [0, most);
// it is zero when most is below a millisecond.
//
// It depends on the key, the slot (to the millisecond) and most, and on
// nothing else: every process and every version gives the same answer, so that
// a preview is exact. Changing this function moves every jittered schedule.
func Jitter(key string, slot time.Time, most time.Duration) time.Duration {
	steps := most.Milliseconds()
	if steps <= 0 {
		return 0
	}
	input := binary.BigEndian.AppendUint64(make([]byte, 0, 64), uint64(slot.UnixMilli()))
	sum := sha256.Sum256(append(input, key...))
	step, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:8]), uint64(steps))
	return time.Duration(step) * time.Millisecond
}
