package mcp

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

const (
	firstWait   = 250 * time.Millisecond
	longestWait = 30 * time.Second
	// lasting is how long a session has to last for the wait to start over.
	lasting = time.Minute
	// patience is how long a call, or the start, waits for a session.
	patience = 10 * time.Second
)

// supervise keeps a session until the connection is closed.
func (c *Connection) supervise() {
	wait, legacy := firstWait, false
	for c.life.Err() == nil {
		began := time.Now()
		s, err := c.connect(c.life, &legacy)
		var failure *connector.Error
		if err == nil {
			c.publish(s)
			c.watchSession(s)
			s.carry.shut(s.client)
			failure = c.endFault(s)
		} else {
			failure = c.startFault(err)
		}
		if c.life.Err() != nil {
			return
		}
		if s != nil && time.Since(began) > lasting {
			wait = firstWait
		}
		c.miss(failure, s == nil, wait)
		select {
		case <-c.life.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, longestWait)
	}
}

// publish tells everybody about a session.
func (c *Connection) publish(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.failure, c.misses = s, nil, 0
	c.spreadLocked()
}

// miss tells everybody that there is no session. again is a failure to make
// one; the first in a row is logged.
func (c *Connection) miss(failure *connector.Error, again bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log.Warn
	if c.misses > 0 {
		log = c.log.Debug
	}
	log("there is no session with the MCP server; it is tried again", "error", failure.Error(), "wait", wait)
	c.live, c.failure, c.next = nil, failure, time.Now().Add(wait)
	if again {
		c.misses++
	}
	c.spreadLocked()
}

// spreadLocked wakes everybody who waits for news.
func (c *Connection) spreadLocked() {
	close(c.news)
	c.news = make(chan struct{})
	select {
	case <-c.tried:
	default:
		close(c.tried)
	}
}

// watchSession stays with a session until it is over.
func (c *Connection) watchSession(s *session) {
	c.working.Go(func() {
		_ = s.client.Wait() // who drops it knows why, and explain does
		s.drop()
	})
	for {
		select {
		case <-c.life.Done():
			return
		case <-s.over:
			return
		case <-s.stale:
			ctx, cancel := context.WithTimeout(c.life, shakeLimit)
			if err := c.list(ctx, s); err != nil {
				c.log.Warn("the changed tools of the MCP server cannot be listed", "error", c.clean(err))
				s.drop()
			}
			cancel()
		}
	}
}

// acquire returns the session. If there is none it waits for one, unless that
// is in vain: somebody has to do something first, or several attempts failed.
func (c *Connection) acquire(ctx context.Context) (*session, *connector.Error) {
	c.run()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		c.mu.Lock()
		s, failure, next, misses, news := c.live, c.failure, c.next, c.misses, c.news
		c.mu.Unlock()
		if s != nil && !s.isOver() {
			return s, nil
		}
		if failure != nil && (lastingClass(failure.Class) || misses > 1) {
			return nil, waitUntil(failure, next)
		}
		select {
		case <-news:
		case <-limit.C:
			return nil, waitUntil(failure, next)
		case <-ctx.Done():
			return nil, interrupted(ctx, false, false)
		}
	}
}
