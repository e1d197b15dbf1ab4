package server

import (
	"github.com/pawlrun/pawl/internal/api"
	"github.com/pawlrun/pawl/internal/relay"
	"github.com/pawlrun/pawl/internal/web"
)

// buildRelay makes those who follow hear what happens, on any node.
func (s *server) buildRelay() {
	s.feed, s.pulse = api.NewFeed(), web.NewPulse()
	s.relay = relay.New(relay.Config{
		DB: s.db, Log: s.log,
		Wanted: func() relay.Wants {
			return relay.Wants{Events: s.feed.Followed(), Lanes: s.pulse.Followed(), Ends: s.feed.Awaited()}
		},
		Heard: func(news relay.News) {
			s.feed.Heard(news)
			s.pulse.Heard(news)
		},
	})
	s.feed.Relay(s.relay)
	s.pulse.Relay(s.relay)
}
