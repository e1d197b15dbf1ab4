package store

import (
	"strconv"

	"github.com/google/uuid"
)

// A job is a number here and over HTTP. Applications that use the functions of
// the database (see internal/store/door) know it by a UUID, which is the same
// number in other clothes: 48 bits of milliseconds as in version 7, the 22 bits
// behind them, and a tail that tells that it is one of ours.

// uuidTail is the last bytes of every UUID of a job; it ends with "pawl".
const uuidTail = 0x00007061776c

// JobUUID is the UUID of a job.
func JobUUID(id int64) string {
	var u uuid.UUID
	ms := uint64(id>>22) + idEpoch  //nolint:gosec // ids are positive
	low := uint64(id) & (1<<22 - 1) //nolint:gosec // the same
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
		u[10+i] = byte(uint64(uuidTail) >> (8 * (5 - i)))
	}
	u[6], u[7] = 0x80|byte(low>>18), byte(low>>10)
	u[8], u[9] = 0x80|byte(low>>4)&0x3f, byte(low)<<4
	return u.String()
}

// ParseJobID reads the id of a job: its number, or its UUID.
func ParseJobID(text string) (id int64, ok bool) {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return id, id > 0 && strconv.FormatInt(id, 10) == text
	}
	u, err := uuid.Parse(text)
	if err != nil {
		return 0, false
	}
	var ms int64
	for _, b := range u[:6] {
		ms = ms<<8 | int64(b)
	}
	id = (ms-idEpoch)<<22 | int64(u[6]&0x0f)<<18 | int64(u[7])<<10 | int64(u[8]&0x3f)<<4 | int64(u[9]>>4)
	return id, ms > idEpoch && id > 0 && JobUUID(id) == text
}
