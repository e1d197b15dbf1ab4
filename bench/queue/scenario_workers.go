package main

import (
	"context"
	"slices"

	"github.com/pawlrun/pawl/bench/subject"
)

func workersDrainScenario() scenario {
	s := drainScenario()
	s.about += " Peers take jobs from the database by themselves; Pawl's workers ask a server over HTTP."
	return s
}

func workersLatencyScenario() scenario {
	s := latencyScenario()
	s.lead = 3
	return s
}

// lanesAtOnce is how many jobs of a lane may run at once.
const lanesAtOnce = 4

func workersLanesScenario() scenario {
	return scenario{
		name:  "lanes",
		title: "20,000 jobs over 2,000 lanes, four of a lane at once",
		about: "A drain in which at most four jobs of a lane run at a time (`concurrencyPerLane: 4`). The harness checks that. " +
			"River has a queue with four workers for each lane, Graphile Worker four named queues.",
		metrics: []metric{{key: "rate", title: "jobs/s"}},
		lanes:   true, perLane: lanesAtOnce, repeat: true,
		run: runWorkersLanes,
	}
}

func runWorkersLanes(ctx context.Context, t *trial) (values, error) {
	b := t.batch(t.size.Warm, t.size.Lanes)
	b.PerLane = lanesAtOnce
	if _, err := t.drain(ctx, b); err != nil {
		return nil, err
	}
	b = t.batch(t.size.LaneJobs, t.size.Lanes)
	b.PerLane = lanesAtOnce
	d, err := t.drain(ctx, b)
	return values{"rate": d.rate()}, err
}

func crowdScenario() scenario {
	return scenario{
		name:  "crowd",
		title: "Start of others beside a lane with a million jobs",
		about: "Single jobs over 50 lanes, one every 5 ms for 10 s: with nothing else, and while a million jobs wait in another lane, which " +
			"goes on all the time, one job of 20 ms after the other. Time from the call of the enqueue to the start of the handler.",
		metrics: []metric{
			{key: "alone50", title: "alone p50, ms", lower: true, digits: 2},
			{key: "alone99", title: "alone p99, ms", lower: true, digits: 2},
			{key: "beside50", title: "beside p50, ms", lower: true, digits: 2},
			{key: "beside99", title: "beside p99, ms", lower: true, digits: 2},
			{key: "slower", title: "p99 grows by, %", lower: true},
		},
		few: true, lead: 3, run: runCrowd,
		derive: func(v values) { v["slower"] = 100 * (v["beside99"]/v["alone99"] - 1) },
	}
}

func runCrowd(ctx context.Context, t *trial) (values, error) {
	if err := t.warm(ctx, t.size.FewLanes); err != nil {
		return nil, err
	}
	alone, err := t.pacedLanes(ctx, 0)
	if err != nil {
		return nil, err
	}
	crowd := t.batch(t.size.Waiting, t.size.FewLanes)
	crowd.OneLane = true
	if _, err := t.bulk(crowd); err != nil {
		return nil, err
	}
	beside, err := t.pacedLanes(ctx, t.size.Waiting)
	if err != nil {
		return nil, err
	}
	return values{
		"alone50": percentile(alone, 50), "alone99": percentile(alone, 99),
		"beside50": percentile(beside, 50), "beside99": percentile(beside, 99),
	}, nil
}

// pacedLanes tells how long after their calls jobs of lanes begin, while so many
// others go on one after the other.
func (t *trial) pacedLanes(ctx context.Context, others int) ([]float64, error) {
	b := t.batch(t.size.PacedJobs, t.size.FewLanes)
	b.Beside, b.SlowMS = others, 20
	if err := t.startAndSettle(ctx, b); err != nil {
		return nil, err
	}
	if _, err := t.child.Do(subject.Request{Op: subject.OpPaced, Batch: b, EveryUS: t.size.PacedEvery.Microseconds()}); err != nil {
		return nil, err
	}
	s, err := t.started(ctx)
	if err != nil {
		return nil, err
	}
	_, err = t.stop()
	return fromCalls(s), err
}

// fromCalls returns how many milliseconds after the call of its enqueue each job began.
func fromCalls(s *subject.Samples) []float64 {
	late := make([]float64, len(s.Started))
	for i := range late {
		late[i] = float64(s.Started[i]-s.Called[i]) / 1e3
	}
	return late
}

// started waits until all jobs of the batch have begun. What goes on beside them need
// not end, so the store is never asked.
func (t *trial) started(ctx context.Context) (*subject.Samples, error) {
	ctx, cancel := context.WithTimeout(ctx, t.size.Patience)
	defer cancel()
	for {
		s, err := t.samples()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(s.Started, 0) {
			return s, nil
		}
		if err := pause(ctx, startPoll); err != nil {
			return nil, errUnfinished
		}
	}
}
