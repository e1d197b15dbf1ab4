package api

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/gaugestore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// mostSeries is how many lanes or accounts have numbers of their own: each is a
// series that somebody's Prometheus keeps.
const mostSeries = 500

// laneCollector tells how lanes stand. It asks the database for as long as its
// request is there.
type laneCollector struct {
	api *API
	ctx context.Context //nolint:containedctx // of the one request that it serves
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

//nolint:gochecknoglobals // constant descriptions
var (
	lanesDesc     = desc("pawl_lanes", "Lanes by how they stand.", "kind", "state")
	attentionDesc = desc("pawl_lane_needs_attention", "1 for each lane that needs a person, up to 500 of a kind.", "kind", "lane", "issue")
	freshDesc     = desc("pawl_source_last_success_timestamp_seconds", "When a source was last fetched completely; 0 is never. Up to 500 sources.", "source")
	rowsDesc      = desc("pawl_source_rows_total", "Rows that a source has written since it was made. Up to 500 sources.", "source")
	approvalsDesc = desc("pawl_approvals_waiting", "Approvals that wait for a person; no more than 10001 are counted.")
	mutationsDesc = desc("pawl_mutations_open", "Mutations of which it is not settled what became of them, by their state; no more than 10001 are counted.", "state")
	spendDesc     = desc("pawl_spend_today_usd", "What a billing account was charged today, by the calendar of UTC. Up to 500 accounts.", "account")
)

// Describe names what Collect gives.
func (c *laneCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lanesDesc, attentionDesc, freshDesc, rowsDesc, approvalsDesc, mutationsDesc, spendDesc} {
		out <- d
	}
}

// Collect asks the database.
func (c *laneCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.ctx, scrapeTimeout)
	defer cancel()
	var found []prometheus.Metric
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		found = append(found, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
	}
	err := c.api.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found = nil
		if err := c.lanes(ctx, tx, gauge); err != nil {
			return err
		}
		return c.things(ctx, gaugestore.In(tx), gauge)
	})
	switch {
	case c.ctx.Err() != nil:
		return // nobody reads it
	case err != nil:
		out <- prometheus.NewInvalidMetric(lanesDesc, err)
		return
	}
	for _, m := range found {
		out <- m
	}
}

type setGauge func(d *prometheus.Desc, value float64, labels ...string)

func (c *laneCollector) lanes(ctx context.Context, tx *store.Tx, gauge setGauge) error {
	for _, k := range c.api.kinds {
		counted, err := runstore.In(tx).CountLanes(ctx, k.Kind(), "")
		if err != nil {
			return err
		}
		for _, state := range run.States() {
			gauge(lanesDesc, float64(counted[string(state)]), string(k.Kind()), string(state))
		}
		troubled, err := gaugestore.In(tx).Attention(ctx, k.Kind(), mostSeries)
		if err != nil {
			return err
		}
		told := map[gaugestore.Attention]bool{} // lanes of two owners can have one name
		for _, a := range troubled {
			if a.Cause == "" && a.Issue == "" {
				a.Issue = string(run.IssueExpectation)
			}
			if a.Cause = ""; !told[a] {
				told[a] = true
				gauge(attentionDesc, 1, string(k.Kind()), a.Lane, a.Issue)
			}
		}
	}
	return nil
}

func (c *laneCollector) things(ctx context.Context, tx gaugestore.Tx, gauge setGauge) error {
	sources, err := tx.Sources(ctx, mostSeries)
	if err != nil {
		return err
	}
	for _, s := range sources {
		at := 0.0
		if !s.LastSuccessAt.IsZero() {
			at = float64(s.LastSuccessAt.UnixMilli()) / 1000
		}
		gauge(freshDesc, at, s.Name)
		gauge(rowsDesc, float64(s.Rows), s.Name)
	}
	waiting, err := tx.Approvals(ctx, dueBound)
	if err != nil {
		return err
	}
	gauge(approvalsDesc, float64(waiting))
	open, err := tx.Mutations(ctx, dueBound)
	if err != nil {
		return err
	}
	for _, m := range open {
		gauge(mutationsDesc, float64(m.N), m.Of)
	}
	spent, err := tx.Spend(ctx, time.Now(), mostSeries)
	if err != nil {
		return err
	}
	for _, a := range spent {
		gauge(spendDesc, float64(a.N)/pawl.OneUSD, a.Of)
	}
	return nil
}
