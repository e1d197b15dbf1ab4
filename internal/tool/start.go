package tool

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// start starts all connections that work in the background, at the same time,
// because each may wait for its server. A policy for a method that the server
// does not have is told to the log, which may be nil.
func (s *Set) start(log *slog.Logger) {
	var starting sync.WaitGroup
	for _, m := range s.members {
		if starter, ok := m.Connection.(connector.Starter); ok {
			starting.Go(func() {
				starter.Start()
				m.warnOfPolicies(log)
			})
		}
	}
	starting.Wait()
}

func (m member) warnOfPolicies(log *slog.Logger) {
	methods := m.Connection.Methods()
	if log == nil || len(methods) == 0 {
		return
	}
	for _, method := range slices.Sorted(maps.Keys(m.Policy)) {
		if fault := methodFault(method, methods); fault != "" {
			log.Warn("a policy of a connection has no effect", "connection", m.Name, "why", fault)
		}
	}
}
