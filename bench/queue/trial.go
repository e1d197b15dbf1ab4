package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pawlrun/pawl/bench/subject"
)

// trial is one contender in one scenario, with a fresh process and an empty
// database.
type trial struct {
	child   *subject.Child
	db      *database // nil on SQLite
	size    sizes
	nextSeq int
}

// startTrial sets everything up; end undoes it.
func (b *bench) startTrial(ctx context.Context, e entrant, cfg subject.Config) (*trial, error) {
	t := &trial{size: b.size}
	if e.store == onSQLite {
		b.files++
		cfg.DSN = filepath.Join(b.dir.scratch, fmt.Sprintf("bench-%d.db", b.files))
	} else {
		db, err := b.cluster.create(ctx)
		if err != nil {
			return nil, err
		}
		t.db, cfg.DSN = db, db.url
	}
	var err error
	if t.child, err = subject.StartChild(exec.CommandContext(ctx, e.argv[0], e.argv[1:]...)); err != nil {
		return nil, err
	}
	if _, err := t.child.Do(subject.Request{Op: subject.OpSetup, Config: cfg}); err != nil {
		_ = t.end(ctx)
		return nil, err
	}
	return t, nil
}

func (t *trial) end(ctx context.Context) error {
	err := t.child.Close(ctx)
	if t.db != nil {
		if dropErr := t.db.drop(context.WithoutCancel(ctx)); err == nil {
			err = dropErr
		}
	}
	return err
}

// batch returns a batch of jobs with numbers that were not used yet. The
// first is even, so that a job has the same place in an even and in a skewed
// batch.
func (t *trial) batch(count, lanes int) subject.Batch {
	b := subject.Batch{First: t.nextSeq, Count: count, Lanes: lanes}
	t.nextSeq += count + count%2
	return b
}

// park enqueues jobs that are due in an hour, one per millisecond.
func (t *trial) park(count int) error {
	b := t.batch(count, 0)
	b.AtMS, b.StepMS = time.Now().Add(time.Hour).UnixMilli(), 1
	_, err := t.bulk(b)
	return err
}

// bulk enqueues a batch in bulk and returns jobs per second.
func (t *trial) bulk(b subject.Batch) (float64, error) {
	resp, err := t.child.Do(subject.Request{Op: subject.OpBulk, Batch: b})
	return float64(b.Count) / resp.Seconds, err
}

// each enqueues a batch one by one and returns jobs per second.
func (t *trial) each(b subject.Batch, callers int) (float64, error) {
	resp, err := t.child.Do(subject.Request{Op: subject.OpEach, Batch: b, Callers: callers})
	return float64(b.Count) / resp.Seconds, err
}

func (t *trial) expect(b subject.Batch) error {
	_, err := t.child.Do(subject.Request{Op: subject.OpExpect, Batch: b})
	return err
}

func (t *trial) start() error {
	_, err := t.child.Do(subject.Request{Op: subject.OpStart})
	return err
}

// wait returns when all expected jobs are finished.
func (t *trial) wait() (subject.Tally, error) {
	resp, err := t.child.Do(subject.Request{Op: subject.OpWait, TimeoutMS: t.size.Patience.Milliseconds()})
	if err != nil && resp.Tally != nil {
		return subject.Tally{}, fmt.Errorf("%w in %s: %w", errUnfinished, t.size.Patience, err)
	}
	if err != nil {
		return subject.Tally{}, err
	}
	return *resp.Tally, nil
}

// A contender that takes too long, or breaks what it promises, has no number.
// For a peer that is a result like others.
var (
	errUnfinished = errors.New("did not finish")
	errVoid       = errors.New("void")
)

func (t *trial) samples() (*subject.Samples, error) {
	resp, err := t.child.Do(subject.Request{Op: subject.OpSamples})
	return resp.Samples, err
}

// stop ends the work and holds the contender to what it promises: every job
// once, none that was not due, and no two of a lane at a time.
func (t *trial) stop() (subject.Tally, error) {
	resp, err := t.child.Do(subject.Request{Op: subject.OpStop})
	if err != nil {
		return subject.Tally{}, err
	}
	got := *resp.Tally
	if got.Duplicates+got.Strays+got.Overlaps > 0 {
		return got, fmt.Errorf("%w: %d jobs were handled again, %d before they were due, %d beside another of their lane",
			errVoid, got.Duplicates, got.Strays, got.Overlaps)
	}
	return got, nil
}

// settle prepares the database for a measurement.
func (t *trial) settle(ctx context.Context) error {
	if t.db == nil {
		return nil
	}
	return t.db.settle(ctx)
}

// drain enqueues a batch while nobody works, then lets the contender work it
// off.
func (t *trial) drain(ctx context.Context, b subject.Batch) (drained, error) {
	if err := t.expect(b); err != nil {
		return drained{}, err
	}
	if _, err := t.bulk(b); err != nil {
		return drained{}, err
	}
	if err := t.settle(ctx); err != nil {
		return drained{}, err
	}
	if err := t.start(); err != nil {
		return drained{}, err
	}
	waited, err := t.wait()
	if err != nil {
		return drained{}, err
	}
	s, err := t.samples()
	if err != nil {
		return drained{}, err
	}
	stopped, err := t.stop()
	d := drained{batch: b, began: waited.FirstUS, finished: waited.FinishedUS, disorder: stopped.Disorder, started: s.Started}
	if err != nil {
		return d, fmt.Errorf("%w (at %s jobs/s)", err, number(d.rate(), 0))
	}
	return d, nil
}

// drained is how a drain went; instants are Unix microseconds.
type drained struct {
	batch           subject.Batch
	began, finished int64
	disorder        int
	started         []int64
}

// rate is jobs per second from the first start until the store has no job left.
func (d drained) rate() float64 {
	return float64(d.batch.Count) / (float64(d.finished-d.began) / 1e6)
}

// others returns the seconds until the last job with an odd number started:
// those that are not in the hot lane of a skewed batch.
func (d drained) others() float64 {
	var last int64
	for i := 1; i < len(d.started); i += 2 {
		last = max(last, d.started[i])
	}
	return float64(last-d.began) / 1e6
}

// warm lets the contender work off a few jobs, so that pools are filled and
// code is compiled.
func (t *trial) warm(ctx context.Context, lanes int) error {
	if _, err := t.drain(ctx, t.batch(t.size.Warm, lanes)); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return nil
}
