package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the numbers of a queue. A nil *Metrics counts nothing.
type Metrics struct {
	lag      *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	finished *prometheus.CounterVec
	leases   prometheus.Counter
	reg      prometheus.Registerer
}

// NewMetrics registers the metrics of a queue.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 300, 3600}
	m := &Metrics{
		reg: reg,
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pawl_queue_lag_seconds", Help: "How late jobs started.", Buckets: buckets,
		}, []string{"task"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pawl_queue_run_seconds", Help: "How long jobs ran.", Buckets: buckets,
		}, []string{"task"}),
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_queue_finished_total", Help: "Runs of jobs by how they ended: succeeded, retried, snoozed, failed, cancelled.",
		}, []string{"task", "outcome"}),
		leases: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pawl_queue_lease_lost_total", Help: "Buckets lost to another node.",
		}),
	}
	reg.MustRegister(m.lag, m.duration, m.finished, m.leases)
	return m
}

// attach adds the gauges that ask the queue.
func (m *Metrics) attach(q *Queue) {
	m.reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pawl_queue_running", Help: "Jobs that run in this process."},
			func() float64 { return float64(q.Running()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pawl_queue_in_hand", Help: "Jobs in the memory of this process."},
			func() float64 { q.board.mu.Lock(); defer q.board.mu.Unlock(); return float64(len(q.board.entries)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pawl_queue_buckets", Help: "Buckets that this process owns."},
			func() float64 { q.board.mu.Lock(); defer q.board.mu.Unlock(); return float64(len(q.board.owned)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pawl_queue_buckets_unheld", Help: "Buckets in the name of this process that it does not own: above zero for long, nobody processes them."},
			func() float64 { return float64(q.health.unheldShares()) }),
	)
}

func (m *Metrics) started(task string, late time.Duration) {
	if m != nil && task != CanaryName {
		m.lag.WithLabelValues(task).Observe(max(0, late.Seconds()))
	}
}

func (m *Metrics) ended(task, outcome string, took time.Duration) {
	if m != nil && task != CanaryName {
		m.duration.WithLabelValues(task).Observe(took.Seconds())
		m.finished.WithLabelValues(task, outcome).Inc()
	}
}

func (m *Metrics) lost() {
	if m != nil {
		m.leases.Inc()
	}
}
