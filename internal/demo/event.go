package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// What can happen to a job, as far as the demo cares.
const (
	started   = "started"
	succeeded = "succeeded"
	retried   = "retried"
	failed    = "failed"
	cancelled = "cancelled"
)

// happening is something that happened to a job.
type happening struct {
	what    string
	at      time.Time
	started time.Time // of the attempt that ended
	job     client.Job
	err     string
	status  int // of the last answer of the desk; 0 if it was not called
}

// readEvent reads an event of the stream; ok is false for one that is not
// about a job.
func readEvent(e client.StreamEvent) (h happening, ok bool) {
	if e.Type != "job" {
		return h, false
	}
	var data client.JobEvent
	if json.Unmarshal(e.Data, &data) != nil {
		return h, false
	}
	return happening{what: data.What, at: data.At.Time, job: data.Job, err: string(data.Error)}, true
}

// watch follows the events of the server until ctx ends. It returns when the
// stream is open; the channel is closed when it is over.
func (s *stage) watch(ctx context.Context) (over <-chan struct{}, err error) {
	opened, done := make(chan struct{}, 1), make(chan struct{})
	var ended error
	go func() {
		defer close(done)
		ended = s.api.Watch(ctx, client.Watcher{
			Kind: "job",
			CatchUp: func(context.Context) error {
				select {
				case opened <- struct{}{}:
				default: // connected again; what was missed shows as a scene that does not end
				}
				return nil
			},
			Event: func(e client.StreamEvent) error {
				if h, ok := readEvent(e); ok {
					s.observe(h)
				}
				return nil
			},
		})
	}()
	select {
	case <-opened:
		return done, nil
	case <-done:
		if ended != nil {
			return nil, fmt.Errorf("follow the events: %w", ended)
		}
		return done, nil // the demo ended before it began
	}
}

func brokenPromises(names []string) error {
	return &pawl.Error{Code: pawl.CodeInternal, Msg: "broken promises: " + strings.Join(names, ", ")}
}
