package server

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// meter counts what happens to lanes in this process. A nil *meter counts nothing.
type meter struct {
	runs  *prometheus.CounterVec
	late  *prometheus.HistogramVec
	slots *prometheus.CounterVec

	mu    sync.Mutex
	lanes map[string]bool // that have numbers of their own; guarded by mu
}

const (
	// mostMetered is how many lanes have numbers of their own: each is several
	// series, here and in somebody's Prometheus. The others share one.
	mostMetered = 500

	otherLanes = "(others)"
)

func newMeter(reg prometheus.Registerer) *meter {
	m := &meter{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_runs_total", Help: "Runs by what became of them: committed, failed, waiting for a person or a retry, crashed, cancelled. From the 501st lane on they are counted together.",
		}, []string{"kind", "lane", "outcome"}),
		late: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pawl_run_lateness_seconds", Help: "How long after their time runs began that stand for one, first attempts only.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 3600, 86400},
		}, []string{"kind"}),
		slots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_slots_total", Help: "Slots of schedules that a worker closed, by their disposition. Those of a time in which nobody was there are not counted. From the 501st lane on they are counted together.",
		}, []string{"lane", "disposition"}),
		lanes: map[string]bool{},
	}
	reg.MustRegister(m.runs, m.late, m.slots)
	return m
}

// named is the label of a lane.
func (m *meter) named(of lane.Ref) string {
	name := of.Name
	if name == "" {
		name = of.Key
	}
	key := string(of.Kind) + ":" + name
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.lanes[key] {
		if len(m.lanes) >= mostMetered {
			return otherLanes
		}
		m.lanes[key] = true
	}
	return name
}

func (m *meter) run(e ledger.Event, of lane.Ref) {
	if m == nil {
		return
	}
	begins := e.What == ledger.Begun || e.What == ledger.Started // some are begun by whoever starts them
	if begins && e.Run.Attempt == 1 && !e.Run.ScheduledFor.IsZero() && !e.Run.StartedAt.IsZero() {
		m.late.WithLabelValues(string(of.Kind)).Observe(max(0, e.Run.StartedAt.Sub(e.Run.ScheduledFor).Seconds()))
	}
	if outcome := outcomeOf(e); outcome != "" {
		m.runs.WithLabelValues(string(of.Kind), m.named(of), outcome).Inc()
	}
}

// outcomeOf says in a word how a run ended, or that it waits; empty while it goes on.
func outcomeOf(e ledger.Event) string {
	switch e.What {
	case ledger.Committed:
		return "committed"
	case ledger.Crashed:
		return "crashed"
	case ledger.Cancelled:
		return "cancelled"
	case ledger.Stopped:
		return stoppedAs(&e.Run)
	case ledger.Begun, ledger.Started, ledger.Advanced, ledger.Resumed:
	}
	return ""
}

func stoppedAs(r *runstore.Run) string {
	if r.Status == pawl.StatusPausedTransient || r.Status == pawl.StatusPausedReconciliation || r.Status == pawl.StatusPausedApproval {
		return "waiting"
	}
	return "failed"
}

func (m *meter) lane(c lane.Change) {
	if m == nil {
		return
	}
	if d, ok := c.Detail.(schedule.SlotDetail); ok && c.What == "slot" && d.Disposition != "" && d.Status != string(run.SlotPending) {
		m.slots.WithLabelValues(m.named(c.Ref), d.Disposition).Inc()
	}
}
