package execution

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
)

// Guest is somebody who runs graphs with another token than that of the service.
//
// The keys of guests live in a space of their own, one for each user: whatever
// key a guest chooses, it is never that of a slot, of a call or of somebody
// else, here or at the executor that is told the key. What a guest does
// leaves a line in the audit log.
type Guest struct {
	UserID string
	Actor  string // as the audit log has it; empty for the service itself
}

// key is what a guest's key is to the service.
func (g Guest) key(key string) string {
	if g.Actor == "" {
		return key
	}
	space := "user:" + g.UserID + ":"
	if len(space)+len(key) > contract.MaxKey {
		sum := sha256.Sum256([]byte(key))
		key = "sha256:" + hex.EncodeToString(sum[:])
	}
	return space + key
}

// clean leaves out what only the service itself may say of a run: its id, and
// the slot that it stands for.
func (g Guest) clean(req contract.RunRequestV1) contract.RunRequestV1 {
	if g.Actor != "" {
		req.RunID, req.ScheduleID, req.ScheduledFor = "", "", client.Instant{}
		req.Schedule, req.Timezone, req.Idempotent, req.Retries, req.Asked = "", "", false, false, false
	}
	return req
}
