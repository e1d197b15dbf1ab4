package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// HeartbeatName is the task that tells a watcher that Pawl works.
const HeartbeatName = "pawl.heartbeat"

const (
	beatEvery = time.Minute
	beatTime  = 10 * time.Second // for one beat
	sickAgain = 5 * time.Second  // until the queue's health is looked at again
)

// HeartbeatConfig is what a heartbeat is made of.
type HeartbeatConfig struct {
	URL    string        // empty beats nowhere
	Every  time.Duration // zero is a minute
	Client *outbound.Client
	Health func() error // of the queue; nil error is healthy
	Log    *slog.Logger
}

// Heartbeat asks for a URL again and again while the queue is healthy, so that
// silence is an alarm.
type Heartbeat struct {
	cfg    HeartbeatConfig
	host   string      // for messages; the rest of the URL may be secret
	silent atomic.Bool // the last beat was not taken or not sent
}

// NewHeartbeat makes a heartbeat, or says what is wrong with its
// configuration.
func NewHeartbeat(cfg HeartbeatConfig) (*Heartbeat, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Every == 0 {
		cfg.Every = beatEvery
	}
	h := &Heartbeat{cfg: cfg}
	if cfg.URL == "" {
		return h, nil
	}
	if fault := urlFault(cfg.URL); fault != "" {
		return nil, invalid("the URL of the heartbeat "+fault, "Use the URL that your watcher gave you.")
	}
	if cfg.Every < time.Second {
		return nil, invalid("the heartbeat is faster than one beat a second", "Use 1m.")
	}
	if cfg.Client == nil || cfg.Health == nil {
		return nil, errors.New("notify: a heartbeat needs a client and the health of the queue")
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, invalid("the URL of the heartbeat is not a URL", "")
	}
	h.host = u.Host
	return h, nil
}

// Jobs are to be enqueued when a process starts: one, or none without a URL. A
// cluster shares it, and the first beat comes at once.
func (h *Heartbeat) Jobs() []store.JobSpec {
	if h.cfg.URL == "" {
		return nil
	}
	return []store.JobSpec{{Task: HeartbeatName, Key: HeartbeatName, KeyMode: store.Earliest, Priority: 1}}
}

// Task beats. It is to be registered without a URL too: a job that an earlier
// process left ends then.
func (h *Heartbeat) Task() queue.Task {
	return queue.Task{Internal: true, Timeout: beatTime + 5*time.Second, Run: func(ctx context.Context, j *queue.Job) error {
		if h.cfg.URL == "" {
			return nil
		}
		now := time.Now()
		if err := h.cfg.Health(); err != nil {
			h.report(ctx, fmt.Errorf("the queue is not healthy: %w", err))
			return queue.Snooze(now.Add(min(sickAgain, h.cfg.Every)))
		}
		err := h.beat(ctx)
		if ctx.Err() != nil && err != nil {
			return err // told to stop, or out of time: the queue knows what to do
		}
		h.report(ctx, err)
		return queue.Snooze(nextBeat(j.RunAt, now, h.cfg.Every))
	}}
}

// nextBeat keeps the rhythm; after a pause it begins a new one.
func nextBeat(due, now time.Time, every time.Duration) time.Time {
	if next := due.Add(every); next.After(now) {
		return next
	}
	return now.Add(every)
}

func (h *Heartbeat) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.cfg.URL, nil)
	if err != nil {
		return errors.New("make the request: the URL cannot be called") // the cause would quote it
	}
	resp, err := h.cfg.Client.Do(ctx, req)
	if err != nil {
		return withHint(err)
	}
	_ = resp.Body.Close() // what it says is of no interest
	if !outbound.JudgeStatus(outbound.Read, resp.StatusCode).OK() {
		return fmt.Errorf("%s answered %d %s", h.host, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}

// tell logs when beats stop being taken, and when they are taken again.
func (h *Heartbeat) report(ctx context.Context, err error) {
	if h.silent.Swap(err != nil) == (err != nil) {
		return
	}
	if err != nil {
		h.cfg.Log.WarnContext(ctx, "the heartbeat is silent", "err", err)
	} else {
		h.cfg.Log.InfoContext(ctx, "the heartbeat is heard again")
	}
}
