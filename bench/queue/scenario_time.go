package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/bench/subject"
)

// settleTime is what a contender gets between its start and a measurement of
// time: leaders are elected and listeners listen.
const settleTime = 6 * time.Second

// startPoll is how often it is asked how many jobs have begun.
const startPoll = 200 * time.Millisecond

// timerLead is how long before its first timer a batch is enqueued. River looks
// for scheduled jobs every five seconds; with less, its lateness is a matter
// of luck.
const timerLead = 6 * time.Second

func latencyScenario() scenario {
	return scenario{
		name:  "latency",
		title: "Commit to start at 200 jobs/s",
		about: "Single jobs into a working queue, one every 5 ms for 10 s, from the process that works. Time from " +
			"the return of the enqueue to the start of the handler (0 if that came first), and from its call.",
		metrics: []metric{
			{key: "p50", title: "p50, ms", lower: true, digits: 2},
			{key: "p99", title: "p99, ms", lower: true, digits: 2},
			{key: "call50", title: "from the call p50, ms", lower: true, digits: 2},
			{key: "call99", title: "from the call p99, ms", lower: true, digits: 2},
		},
		lead: 1,
		run:  runLatency,
	}
}

func runLatency(ctx context.Context, t *trial) (values, error) {
	if err := t.warm(ctx, 0); err != nil {
		return nil, err
	}
	b := t.batch(t.size.PacedJobs, 0)
	if err := t.startAndSettle(ctx, b); err != nil {
		return nil, err
	}
	req := subject.Request{Op: subject.OpPaced, Batch: b, EveryUS: t.size.PacedEvery.Microseconds()}
	if _, err := t.child.Do(req); err != nil {
		return nil, err
	}
	s, err := t.finish()
	if err != nil {
		return nil, err
	}
	var fromCommit, fromCall []float64
	for i := range b.Count {
		fromCommit = append(fromCommit, max(0, float64(s.Started[i]-s.Committed[i])/1e3))
		fromCall = append(fromCall, float64(s.Started[i]-s.Called[i])/1e3)
	}
	return values{
		"p50": percentile(fromCommit, 50), "p99": percentile(fromCommit, 99),
		"call50": percentile(fromCall, 50), "call99": percentile(fromCall, 99),
	}, nil
}

func timersScenario() scenario {
	return scenario{
		name:  "timers",
		title: "Lateness of 2,000 timers over 20 s",
		about: "Jobs due every 10 ms, enqueued in bulk six seconds before the first is due, into a working " +
			"queue. Time from the due instant to the start of the handler.",
		metrics: []metric{
			{key: "p50", title: "p50, ms", lower: true, digits: 2},
			{key: "p99", title: "p99, ms", lower: true, digits: 2},
			{key: "max", title: "max, ms", lower: true, digits: 2},
			{key: "early", title: "early", lower: true},
		},
		lead: 1,
		run:  runTimers,
	}
}

func runTimers(ctx context.Context, t *trial) (values, error) {
	if err := t.warm(ctx, 0); err != nil {
		return nil, err
	}
	b := t.batch(t.size.Timers, 0)
	if err := t.startAndSettle(ctx, b); err != nil {
		return nil, err
	}
	b.AtMS, b.StepMS = time.Now().Add(timerLead).UnixMilli(), t.size.TimerStep.Milliseconds()
	if _, err := t.bulk(b); err != nil {
		return nil, err
	}
	s, err := t.finish()
	if err != nil {
		return nil, err
	}
	var late []float64
	early := 0.0
	for i, started := range s.Started {
		ms := float64(started-b.Job(i).RunAt.UnixMicro()) / 1e3
		if ms < 0 {
			early++
		}
		late = append(late, ms)
	}
	return values{
		"p50": percentile(late, 50), "p99": percentile(late, 99), "max": percentile(late, 100), "early": early,
	}, nil
}

func idleScenario() scenario {
	return scenario{
		name:  "idle",
		title: "Statements at idle",
		about: "100,000 jobs due in an hour, nothing else, one process; statements that PostgreSQL counts in 10 s " +
			"after a pause.",
		metrics: []metric{{key: "statements", title: "statements/s", lower: true, digits: 1}},
		only:    onPostgres,
		run:     runIdle,
	}
}

func runIdle(ctx context.Context, t *trial) (_ values, err error) {
	if err := t.warm(ctx, 0); err != nil {
		return nil, err
	}
	if err := t.park(t.size.IdleParked); err != nil {
		return nil, err
	}
	if err := t.startAndSettle(ctx, t.batch(0, 0)); err != nil {
		return nil, err
	}
	if err := t.db.cluster.count(ctx, true); err != nil {
		return nil, err
	}
	before, err := t.db.statements(ctx)
	if err != nil {
		return nil, fmt.Errorf("count statements: %w", err)
	}
	if err := pause(ctx, t.size.IdleFor); err != nil {
		return nil, err
	}
	after, err := t.db.statements(ctx)
	if err != nil {
		return nil, fmt.Errorf("count statements: %w", err)
	}
	if err := t.db.cluster.count(ctx, false); err != nil {
		return nil, err
	}
	_, err = t.stop()
	return values{"statements": float64(after-before) / t.size.IdleFor.Seconds()}, err
}

// startAndSettle starts the work and gives it time to become quiet.
func (t *trial) startAndSettle(ctx context.Context, b subject.Batch) error {
	if err := t.settle(ctx); err != nil {
		return err
	}
	if err := t.expect(b); err != nil {
		return err
	}
	if err := t.start(); err != nil {
		return err
	}
	return pause(ctx, settleTime)
}

// finish waits for all jobs, stops the work and returns the samples.
func (t *trial) finish() (*subject.Samples, error) {
	if _, err := t.wait(); err != nil {
		return nil, err
	}
	s, err := t.samples()
	if err != nil {
		return nil, err
	}
	_, err = t.stop()
	return s, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
