package server

import (
	"github.com/pawlrun/pawl/internal/web"
)

// buildWeb makes the pages, which stand before the API.
func (s *server) buildWeb() (err error) {
	admin, err := readToken(s.token)
	if err != nil {
		return err
	}
	s.site, err = web.New(web.Config{
		API: s.api, DB: s.db, Keeper: s.keeper, Kinds: s.kinds, Workforce: s.workforce, Log: s.log, Version: s.cfg.Version, Pulse: s.pulse, Admin: admin,
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
