package main

import "context"

func drainScenario() scenario {
	return scenario{
		name:  "drain",
		title: "Drain 100,000 jobs",
		about: "All jobs are in the queue before the work begins. Jobs per second from the start of the first " +
			"handler until the store has no unfinished job. The handler reads the clock and returns.",
		metrics: []metric{{key: "rate", title: "jobs/s"}},
		repeat:  true,
		run:     runDrain,
	}
}

func runDrain(ctx context.Context, t *trial) (values, error) {
	if err := t.warm(ctx, 0); err != nil {
		return nil, err
	}
	d, err := t.drain(ctx, t.batch(t.size.Drain, 0))
	return values{"rate": d.rate()}, err
}

func futureScenario() scenario {
	return scenario{
		name:  "future",
		title: "Drain 20,000 jobs beside a million future ones",
		about: "The same drain, three times in an empty table and three times beside a million jobs that are " +
			"due in an hour; medians.",
		metrics: []metric{
			{key: "empty", title: "empty table, jobs/s"},
			{key: "beside", title: "beside a million, jobs/s"},
			{key: "kept", title: "kept", digits: 2},
		},
		lead: 1,
		run:  runFuture,
	}
}

func runFuture(ctx context.Context, t *trial) (values, error) {
	if err := t.warm(ctx, 0); err != nil {
		return nil, err
	}
	empty, err := t.drainThrice(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.park(t.size.Parked); err != nil {
		return nil, err
	}
	beside, err := t.drainThrice(ctx)
	return values{"empty": empty, "beside": beside, "kept": beside / empty}, err
}

func (t *trial) drainThrice(ctx context.Context) (float64, error) {
	var rates []float64
	for range 3 {
		d, err := t.drain(ctx, t.batch(t.size.Beside, 0))
		if err != nil {
			return 0, err
		}
		rates = append(rates, d.rate())
	}
	return median(rates), nil
}

func lanesScenario() scenario {
	return scenario{
		name:  "lanes",
		title: "20,000 jobs over 2,000 serial lanes",
		about: "A drain in which at most one job of a lane runs at a time. The harness checks that; " +
			"starts out of order within a lane are counted, not forbidden.",
		metrics: []metric{
			{key: "rate", title: "jobs/s"},
			{key: "disorder", title: "out of order", lower: true},
		},
		lanes:  true,
		repeat: true,
		run:    runLanes,
	}
}

func runLanes(ctx context.Context, t *trial) (values, error) {
	d, err := t.drainLanes(ctx, false)
	return values{"rate": d.rate(), "disorder": float64(d.disorder)}, err
}

func skewScenario() scenario {
	return scenario{
		name:  "skew",
		title: "Half of all jobs in one lane",
		about: "20,000 jobs over 2,000 lanes, twice: spread evenly, and with every other job moved into one hot " +
			"lane. The number is how much later the last of the unmoved jobs starts.",
		metrics: []metric{
			{key: "even", title: "spread evenly, s", lower: true, digits: 3},
			{key: "skewed", title: "beside a hot lane, s", lower: true, digits: 3},
			{key: "slower", title: "slower by, %", lower: true},
			{key: "rate", title: "all jobs beside a hot lane, jobs/s"},
		},
		lanes:  true,
		lead:   1,
		repeat: true,
		run:    runSkew,
		derive: func(v values) { v["slower"] = 100 * (v["skewed"]/v["even"] - 1) },
	}
}

func runSkew(ctx context.Context, t *trial) (values, error) {
	even, err := t.drainLanes(ctx, false)
	if err != nil {
		return nil, err
	}
	skewed, err := t.drainLanes(ctx, true)
	if err != nil {
		return nil, err
	}
	return values{"even": even.others(), "skewed": skewed.others(), "rate": skewed.rate()}, nil
}

// drainLanes drains jobs over lanes after a drain of the same shape.
func (t *trial) drainLanes(ctx context.Context, hot bool) (drained, error) {
	if err := t.warm(ctx, t.size.Lanes); err != nil {
		return drained{}, err
	}
	b := t.batch(t.size.LaneJobs, t.size.Lanes)
	b.Hot = hot
	return t.drain(ctx, b)
}
