package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/retention"
)

// buildPruner makes what removes things that are older than they are kept.
func (s *server) buildPruner(registry prometheus.Registerer) error {
	keep, err := retention.Parse(s.cfg.Keep)
	if err != nil {
		return err
	}
	s.pruner = prune.New(prune.Config{DB: s.db, Log: s.log, Keep: keep, Metrics: registry})
	return nil
}
