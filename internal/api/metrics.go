package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlrun/pawl/internal/store"
)

const (
	// dueBound is how many due jobs a scrape counts at most.
	dueBound = 10_001

	scrapeTimeout = 2 * time.Second
)

// serveMetrics tells what is gathered elsewhere and what is asked of the database
// at every scrape, for as long as whoever scrapes is there.
func (a *API) serveMetrics(w http.ResponseWriter, r *http.Request) {
	own := prometheus.NewRegistry()
	own.MustRegister(&dueCollector{
		db: a.db, ctx: r.Context(),
		due:    prometheus.NewDesc("pawl_queue_due", "Jobs that wait although their time has come, in the whole database; no more than 10001 are counted.", []string{"task"}, nil),
		oldest: prometheus.NewDesc("pawl_queue_oldest_pending_seconds", "How long the oldest job waits whose time has come.", nil, nil),
	}, &laneCollector{api: a, ctx: r.Context()})
	gatherers := prometheus.Gatherers{own}
	if a.cfg.Gatherer != nil {
		gatherers = append(gatherers, a.cfg.Gatherer)
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // what can be told is told, whatever the database does
		ErrorLog:      scrapeLog{a},
	}).ServeHTTP(w, r)
}

// scrapeLog passes the errors of scrapes on.
type scrapeLog struct{ api *API }

func (l scrapeLog) Println(v ...any) { l.api.log.Warn("gather metrics", "err", v) }

// dueCollector counts the backlog of the queue.
type dueCollector struct {
	db          *store.DB
	ctx         context.Context //nolint:containedctx // of the one request that it serves
	due, oldest *prometheus.Desc
}

// Describe names what Collect gives.
func (c *dueCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.due
	out <- c.oldest
}

// Collect asks the database.
func (c *dueCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.ctx, scrapeTimeout)
	defer cancel()
	due, oldest, err := c.db.DueJobs(ctx, dueBound)
	switch {
	case c.ctx.Err() != nil:
		return // nobody reads it
	case err != nil:
		out <- prometheus.NewInvalidMetric(c.due, err)
		return
	}
	for _, d := range due {
		out <- prometheus.MustNewConstMetric(c.due, prometheus.GaugeValue, float64(d.Count), d.Task)
	}
	age := 0.0
	if !oldest.IsZero() {
		age = max(0, time.Since(oldest).Seconds())
	}
	out <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, age)
}

func (a *API) getMetrics(context.Context, *struct{}) (*streamOutput, error) {
	return &streamOutput{func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		a.serveMetrics(w, r)
	}}, nil
}
