package main

import "context"

func enqueueScenario() scenario {
	return scenario{
		name:  "enqueue",
		title: "Enqueue",
		about: "Jobs per second into an empty queue while nobody works: one by one from 16 callers at once, " +
			"and in bulk, 1,000 jobs a call from one caller. Every call waits for the disk.",
		metrics: []metric{
			{key: "each", title: "one by one, jobs/s"},
			{key: "bulk", title: "in bulk, jobs/s"},
		},
		repeat: true,
		run:    runEnqueue,
	}
}

func runEnqueue(ctx context.Context, t *trial) (values, error) {
	if err := t.warm(ctx, 0); err != nil {
		return nil, err
	}
	each, err := t.each(t.batch(t.size.Each, 0), t.size.Callers)
	if err != nil {
		return nil, err
	}
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	bulk, err := t.bulk(t.batch(t.size.Bulk, 0))
	return values{"each": each, "bulk": bulk}, err
}
