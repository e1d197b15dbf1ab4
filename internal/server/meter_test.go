package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Runs and slots are counted by lane and by what became of them; what goes on is
// not counted, and lanes beyond a bound share one series.
func TestMeterCountsLanes(t *testing.T) {
	m := newMeter(prometheus.NewRegistry())
	at := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	mail := lane.Named(pawl.KindWorkflow, "mail")
	poet := lane.OwnedBy(pawl.KindSchedule, "id-1", "poet")
	begun := runstore.Run{Status: pawl.StatusActive, Attempt: 1, ScheduledFor: at}
	m.run(ledger.Event{What: ledger.Begun, Run: begun}, mail) // and not started
	if n := testutil.CollectAndCount(m.late); n != 0 {
		t.Errorf("what is not started is late: %d series", n)
	}
	tell := func(of lane.Ref, what ledger.What, status pawl.Status) {
		m.run(ledger.Event{What: what, Run: runstore.Run{Status: status, Attempt: 1, ScheduledFor: at, StartedAt: at.Add(2 * time.Second)}}, of)
	}
	tell(mail, ledger.Started, pawl.StatusActive)
	tell(mail, ledger.Advanced, pawl.StatusActive)
	tell(mail, ledger.Committed, pawl.StatusCommitted)
	tell(mail, ledger.Stopped, pawl.StatusPausedApproval)
	tell(mail, ledger.Stopped, pawl.StatusFailedLogic)
	tell(poet, ledger.Crashed, pawl.StatusCrashed)
	m.lane(lane.Change{Ref: poet, What: "slot", Detail: schedule.SlotDetail{Status: "running"}})
	m.lane(lane.Change{Ref: poet, What: "slot", Detail: schedule.SlotDetail{Status: "success", Disposition: "fired"}})
	m.lane(lane.Change{Ref: poet, What: "paused"})
	for labels, want := range map[[3]string]float64{
		{"workflow", "mail", "committed"}: 1, {"workflow", "mail", "waiting"}: 1, {"workflow", "mail", "failed"}: 1, {"schedule", "poet", "crashed"}: 1,
	} {
		if got := testutil.ToFloat64(m.runs.WithLabelValues(labels[:]...)); got != want {
			t.Errorf("%v: %v", labels, got)
		}
	}
	if n := testutil.CollectAndCount(m.runs); n != 4 {
		t.Errorf("runs have %d series", n)
	}
	if n := testutil.CollectAndCount(m.slots); n != 1 || testutil.ToFloat64(m.slots.WithLabelValues("poet", "fired")) != 1 {
		t.Errorf("slots have %d series", n)
	}
	if n := testutil.CollectAndCount(m.late); n != 1 {
		t.Errorf("lateness has %d series", n)
	}
	for i := range 3 * mostMetered {
		tell(lane.Named(pawl.KindSource, fmt.Sprint(i)), ledger.Committed, pawl.StatusCommitted)
	}
	if n := testutil.CollectAndCount(m.runs); n > mostMetered+10 {
		t.Errorf("%d series", n)
	}
	if got := testutil.ToFloat64(m.runs.WithLabelValues("source", otherLanes, "committed")); got < 2*mostMetered {
		t.Errorf("only %v runs are counted together", got)
	}
	var none *meter
	none.run(ledger.Event{}, mail)
	none.lane(lane.Change{})
}
