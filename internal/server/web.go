package server

import (
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/web"
	"github.com/pawlrun/pawl/internal/workflow"
)

// buildWeb makes the pages, which stand before the API.
func (s *server) buildWeb() (err error) {
	admin, err := readToken(s.token)
	if err != nil {
		return err
	}
	s.site, err = web.New(web.Config{
		API: s.api, DB: s.db, Keeper: s.keeper, Workflows: s.workflows, Sources: s.sources, Graphs: s.schedules, Log: s.log, Version: s.cfg.Version, Pulse: s.pulse, Admin: admin,
	})
	return err
}

// signInURL is a link that signs a browser in once; empty where there are no
// pages.
func (s *server) signInURL(base string) string {
	if s.site == nil {
		return ""
	}
	if path := s.site.SignInPath(); path != "" {
		return base + path
	}
	return ""
}

// tellRun tells who follows of a run, programs and pages.
func (s *server) tellRun(e ledger.Event) {
	s.feed.ObserveRun(e)
	s.pulse.ObserveRun(e)
}

// tellWorkflow tells who follows of what people did to a workflow.
func (s *server) tellWorkflow(c workflow.Change) {
	s.feed.ObserveWorkflow(c)
	s.pulse.ObserveWorkflow(c)
}
