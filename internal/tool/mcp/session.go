package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// shakeLimit bounds the start of a server, until its tools are known.
	shakeLimit = 30 * time.Second
	// listAge is how old the list of tools may be when one of them is called.
	listAge = time.Minute
	// older is the newest version of the protocol that begins with initialize.
	// Servers of that time may end when they are asked anything else first.
	older = "2025-11-25"
)

// session is one conversation with the server.
type session struct {
	client *sdk.ClientSession
	carry  carrier

	over     chan struct{} // closed when it ended or was dropped
	overOnce sync.Once

	stale  chan struct{} // has an entry if the server said that its tools changed
	turn   chan struct{} // full while the tools are being listed
	listed time.Time     // when they were; belongs to who has the turn
}

// carrier is what a session goes over.
type carrier struct {
	transport sdk.Transport
	// shut ends it. The session is nil if there never was one.
	shut func(*sdk.ClientSession)
	// explain says why it ended, or nil if that is not known.
	explain func() error
	// overflowed reports whether it ended for a message that is too large.
	overflowed func() bool
}

// drop gives the session up; who looks after it makes a new one.
func (s *session) drop() { s.overOnce.Do(func() { close(s.over) }) }

func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// connect makes a session in which the tools are known. legacy is how the last
// one began, and is updated.
func (c *Connection) connect(ctx context.Context, legacy *bool) (*session, error) {
	versions := []string{"", older}
	if *legacy {
		versions = []string{older, ""}
	}
	var first error
	for _, version := range versions {
		s, err := c.shakeHands(ctx, version)
		if err == nil {
			*legacy = version == older
			return s, nil
		}
		if first == nil {
			first = err
		}
		if !mayBeVersion(err) {
			break
		}
	}
	return nil, first
}

// shakeHands makes a session in one version of the protocol; empty means any.
func (c *Connection) shakeHands(ctx context.Context, version string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, shakeLimit)
	defer cancel()
	carry, err := c.carrier(ctx)
	if err != nil {
		return nil, c.startFault(err)
	}
	s := &session{carry: carry, over: make(chan struct{}), stale: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	notes := &trip{follows: true}
	s.client, err = c.newClient(s).Connect(notes.attach(ctx), carry.transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		err = c.list(notes.attach(ctx), s)
	}
	if err != nil {
		fault := c.connectFault(ctx, err, carry, notes)
		carry.shut(s.client)
		return nil, fault
	}
	return s, nil
}

// newClient offers nothing to the server: neither sampling nor elicitation nor
// roots.
func (c *Connection) newClient(s *session) *sdk.Client {
	options := &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	}
	if len(c.cfg.command) > 0 {
		options.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case s.stale <- struct{}{}:
			default: // it is known already
			}
		}
	}
	return sdk.NewClient(&sdk.Implementation{Name: "pawl", Version: "1"}, options)
}

// carrier starts the program, or prepares to call the server.
func (c *Connection) carrier(ctx context.Context) (carrier, error) {
	if len(c.cfg.command) == 0 {
		return carrier{
			transport:  networkTransport(c.cfg, c.http),
			explain:    func() error { return nil },
			overflowed: func() bool { return false }, // a trip tells
			shut: func(client *sdk.ClientSession) {
				if client != nil { // it may wait for calls; the next session need not
					c.working.Go(func() { _ = client.Close() })
				}
			},
		}, nil
	}
	home, err := c.makeHome()
	if err != nil {
		return carrier{}, err
	}
	output := &errorOutput{log: c.log, redact: c.redact}
	program, err := startProcess(ctx, c.cfg, home, output)
	if err != nil {
		return carrier{}, err
	}
	line := newPipes(program, c.log)
	return carrier{
		transport:  line,
		overflowed: line.overflow.Load,
		explain:    func() error { return explainEnd(line, output) },
		shut: func(client *sdk.ClientSession) {
			program.end()
			if client != nil {
				_ = client.Close() // its pipes are closed, so it has nothing to wait for
			}
		},
	}, nil
}

// explainEnd says how a program ended. The last lines that it wrote often tell
// why.
func explainEnd(line *pipes, output *errorOutput) error {
	select {
	case <-line.process.ended:
	case <-time.After(endGrace):
		return nil // it lives
	}
	how := "the program ended"
	switch exit := line.process.exit; {
	case line.overflow.Load():
		how = "the program was ended because it sent a message that is too large"
	case exit != nil:
		how += ": " + exit.Error()
	}
	if last := output.last(); last != "" {
		return fmt.Errorf("%s; the last that it said: %s", how, last)
	}
	return errors.New(how)
}

// makeHome makes the home of the program: empty at first, the same after a
// crash, removed in the end.
func (c *Connection) makeHome() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.home != "" {
		return c.home, nil
	}
	home, err := os.MkdirTemp("", "pawl-mcp-")
	if err != nil {
		return "", fmt.Errorf("make a home for the program: %w", err)
	}
	c.home = home
	return home, nil
}
