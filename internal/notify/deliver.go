package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

const (
	attemptTime = 20 * time.Second
	maxAttempts = 14
	longestGap  = 3 * time.Hour
	behind      = 250 * time.Millisecond // how far a notice stays behind an older one
)

// gaps lie between the attempts. With the last one repeated, the attempts
// spread over a day.
func gaps() []time.Duration {
	return []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour, 2 * time.Hour, longestGap}
}

// errGone is the answer of a target that wants no more notices.
var errGone = errors.New("the target is gone")

// later is a failure of a target that said when to come back.
type later struct {
	wait time.Duration
	err  error
}

func (l later) Error() string { return l.err.Error() }
func (l later) Unwrap() error { return l.err }

// Task delivers notices.
func (n *Notifier) Task() queue.Task {
	return queue.Task{
		Internal:    true,
		Run:         n.run,
		Timeout:     n.patience,
		MaxAttempts: maxAttempts,
		Backoff:     n.gap,
	}
}

// gap is the time to wait after an attempt (1, 2, ...), less up to a quarter
// that depends on the job: what failed together comes back one by one.
func (n *Notifier) gap(id int64, attempt int) time.Duration {
	d := n.gaps[min(attempt, len(n.gaps))-1]
	spread := uint64(id) * 0x9E3779B97F4A7C15 >> 54 // 0..1023
	return d - d/4*time.Duration(spread)/1024
}

func (n *Notifier) run(ctx context.Context, j *queue.Job) error {
	var l letter
	if err := json.Unmarshal(j.Payload, &l); err != nil {
		return queue.Permanent(fmt.Errorf("read a notice: %w", err))
	}
	t := n.target(l.Target)
	if t == nil { // another process may have it, or this one after a restart
		return lost(j, l, fmt.Errorf("this process has no target %s", l.Target))
	}
	if t.gone.Load() {
		return nil
	}
	if due, waits, err := n.older(ctx, j, l); err != nil {
		return lost(j, l, err)
	} else if waits {
		return queue.Snooze(laterOf(due, time.Now()).Add(behind))
	}
	now := time.Now()
	err := t.via.send(ctx, l, now)
	switch {
	case err == nil:
		n.log.InfoContext(ctx, "sent a notice about a lane", "target", t.name, "what", l.What, "kind", l.Kind, "lane", l.Lane, "issue", l.Issue, "notice", l.ID)
		return nil
	case errors.Is(err, errGone):
		t.gone.Store(true)
		n.log.ErrorContext(ctx, "a target answered that it is gone; it gets no notices until this process is restarted", "target", t.name, "err", err)
		return nil
	}
	if w, ok := errors.AsType[later](err); ok {
		return queue.RetryAt(now.Add(max(w.wait, n.gap(j.ID, j.Attempt+1))), lost(j, l, err))
	}
	return lost(j, l, err)
}

// lost says in the error of the last attempt what nobody was told; the queue
// logs it.
func lost(j *queue.Job, l letter, err error) error {
	if j.MaxAttempts == 0 || j.Attempt+1 < j.MaxAttempts {
		return fmt.Errorf("notify %s: %w", l.Target, err)
	}
	return fmt.Errorf("a notice is lost (%s, %s %q, %s): notify %s: %w", l.What, l.Kind, l.Lane, l.Issue, l.Target, err)
}

// older looks for a notice of the same lane to the same target that arose
// before this one and still waits, and tells when it is due. The two share a
// lane of the queue, so it does not run now.
func (n *Notifier) older(ctx context.Context, j *queue.Job, l letter) (due time.Time, waits bool, err error) {
	filter := store.JobFilter{Task: Name, Owner: &j.Owner, Lane: j.Lane}
	for from := int64(0); ; {
		page, next, err := n.db.ListJobs(ctx, filter, from, 100)
		if err != nil {
			return due, false, err
		}
		for _, r := range page {
			var other letter
			if waiting(r.State) && json.Unmarshal(r.Payload, &other) == nil && other.ID < l.ID {
				return r.RunAt, true, nil
			}
		}
		if next == 0 {
			return due, false, nil
		}
		from = next
	}
}

// waiting tells whether a job is not over. One that runs by what its row says
// was cut off, and waits for its turn.
func waiting(s store.JobState) bool {
	return s == store.JobScheduled || s == store.JobPending || s == store.JobRunning
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
