package pgtest

import (
	"context"
	"strings"
	"testing"
)

// Server is a PostgreSQL of one test's own, for what happens when the database
// goes away and comes back. It fails its test when a step does not succeed, so
// its methods are called on the test's goroutine.
type Server struct {
	t       testing.TB
	cluster *Cluster
}

// NewServer starts a server for this test alone and removes it when the test
// ends. It takes a second or two: tests that only need a database use URL.
func NewServer(t testing.TB) *Server {
	t.Helper()
	leaveOut(t)
	cluster, err := NewCluster(t.Context())
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Errorf("remove the test's PostgreSQL: %v", err)
		}
	})
	return &Server{t: t, cluster: cluster}
}

// Standby starts a server that follows this one: what is committed here is there
// as well before it is answered. It is removed when the test ends.
func (s *Server) Standby() *Server {
	s.t.Helper()
	cluster, err := s.cluster.NewStandby(s.t.Context())
	if err != nil {
		s.t.Fatalf("a standby of the test's PostgreSQL: %v", err)
	}
	s.t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			s.t.Errorf("remove the standby of the test's PostgreSQL: %v", err)
		}
	})
	return &Server{t: s.t, cluster: cluster}
}

// BothURL is the address of the database on this server and on the other one.
func (s *Server) BothURL(other *Server) string {
	return strings.Replace(s.URL(), s.cluster.Host(), s.cluster.Host()+","+other.cluster.Host(), 1)
}

// Promote makes a standby the primary; the old one was killed before.
func (s *Server) Promote() { s.t.Helper(); s.step("promote", s.cluster.Promote) }

// Follow makes the killed server a standby of another one.
func (s *Server) Follow(primary *Server) {
	s.t.Helper()
	s.step("rejoin", func(ctx context.Context) error { return s.cluster.Follow(ctx, primary.cluster) })
}

// URL is the address of an empty database of the server; it stays the same
// over restarts.
func (s *Server) URL() string { return s.cluster.URL() }

// Start starts the stopped server and waits until it accepts connections.
func (s *Server) Start() { s.t.Helper(); s.step("start", s.cluster.Start) }

// Stop shuts the server down in order; open connections are ended.
func (s *Server) Stop() { s.t.Helper(); s.step("stop", s.cluster.Stop) }

// Kill ends the server at once, as a crash would; the next Start recovers what
// was committed.
func (s *Server) Kill() { s.t.Helper(); s.step("kill", s.cluster.Kill) }

func (s *Server) step(name string, do func(context.Context) error) {
	s.t.Helper()
	// A test stops and starts its server in its clean-up too, when its own
	// context is already cancelled.
	if err := do(context.WithoutCancel(s.t.Context())); err != nil {
		s.t.Fatalf("%s the test's PostgreSQL: %v", name, err)
	}
}
