package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// slowly answers calls after a while, and counts them by their Idempotency-Key.
type slowly struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string]int // guarded by mu
}

func newSlowly(t *testing.T) *slowly {
	u := &slowly{calls: map[string]int{}}
	u.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.calls[r.Header.Get("Idempotency-Key")]++
		u.mu.Unlock()
		select {
		case <-time.After(400 * time.Millisecond):
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *slowly) counted() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.calls)
}

// closed waits for the end of a slot.
func (s *server) closed(id string, of client.Slot) (slot client.Slot) {
	s.t.Helper()
	s.eventually("the slot is closed", func() bool {
		slot = s.slotAt(id, of.ScheduledFor)
		return slot.Status == "success" || slot.Status == "error"
	})
	return slot
}

// A server that is killed at any step of a slot that is a job made one job for it, which
// is done, or says that it does not know; that the job may be tried again is the job's own matter, and it says so by its key.
func TestAKilledJobSlotMadeOneJob(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newSlowly(t)
		s := serveFolder(t, database, `
kind: schedule
name: nightly
run:
  job: {task: http, payload: {url: "`+u.URL+`/"}, lane: mine}
cron: "0 0 1 1 *"
concurrencyPolicy: Allow
`)
		sch := s.scheduleNamed("nightly")
		jobs, unknown := map[string]bool{}, 0
		for _, m := range s.runAndKill(sch.ID, 10) {
			slot := s.closed(sch.ID, m)
			if slot.Unknown { // killed in every attempt: it says that it does not know
				unknown++
				continue
			}
			if slot.Status != "success" || slot.Output == nil || slot.Output.JobID == "" || jobs[slot.Output.JobID] {
				t.Errorf("%+v %+v", slot, slot.Error)
				continue
			}
			jobs[slot.Output.JobID] = true
			if n := u.counted()["job-"+slot.Output.JobID]; n < 1 {
				t.Errorf("the job %s of %s was never sent", slot.Output.JobID, slot.ScheduledFor)
			}
		}
		if n := len(u.counted()); n < len(jobs) || n > len(jobs)+unknown {
			t.Errorf("%d jobs were sent for %d slots and %d unknown ones", n, len(jobs), unknown)
		}
	})
}

// A server that is killed at any step of a slot that is a URL called it once, or says that
// it does not know and asks.
func TestAKilledURLWasCalledOnceOrNobodyKnows(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newSlowly(t)
		s := serveFolder(t, database, `
kind: schedule
name: nightly
run: {url: "`+u.URL+`/"}
cron: "0 0 1 1 *"
concurrencyPolicy: Allow
`)
		sch := s.scheduleNamed("nightly")
		known, unknown := 0, 0
		for _, m := range s.runAndKill(sch.ID, 10) {
			switch slot := s.closed(sch.ID, m); {
			case slot.Status == "success" && slot.Output != nil && slot.Output.Status == http.StatusOK:
				known++
			case slot.Unknown && strings.Contains(slot.Error.Message, "unknown whether it ran"):
				unknown++
			default:
				t.Errorf("%+v %+v", slot, slot.Error)
			}
		}
		calls := u.counted()
		for key, n := range calls {
			if n != 1 {
				t.Errorf("%s was called %d times", key, n)
			}
		}
		if len(calls) < known || len(calls) > known+unknown {
			t.Errorf("%d calls, %d ran, of %d nobody knows", len(calls), known, unknown)
		}
		t.Logf("%d ran once, of %d nobody knows", known, unknown)
	})
}
