package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/store"
)

// history makes rows that are too old to be kept: runs of a workflow that is gone, each
// with a line of log and a read, and a job that ended.
func (h *house) history(ctx context.Context, rows int) error {
	const atOnce = 100_000
	for first := 1; first <= rows/4; first += atOnce {
		n := fmt.Sprintf(`with recursive n (i) as (select cast(%d as bigint) union all select i + 1 from n where i < %d) `, first, min(rows/4, first+atOnce-1))
		at := fmt.Sprintf(`(%d + i)`, time.Now().Add(-200*24*time.Hour).UnixMilli())
		for _, sql := range []string{
			`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, started_at, ended_at) ` + n +
				`select 'old-' || (1000000000 + i), 'workflow', 'old' || (i % 100), 'take', 'consumer', 'event', 'committed', 'committed', 1, ` + at + `, ` + at + `, ` + at + `, ` + at + ` from n`,
			`insert into run_logs (run_id, n, phase, at, level, text) ` + n + `select 'old-' || (1000000000 + i), 1, 'prepare', ` + at + `, 'info', 'looked at what is there, and did it' from n`,
			`insert into run_reads (run_id, n, phase, op, call, answer, at) ` + n + `select 'old-' || (1000000000 + i), 1, 'prepare', 'tool', '{"what":1}', '{"found":[1,2,3]}', ` + at + ` from n`,
			`insert into job_history (id, task, state, run_at, started_at, finished_at, attempt) ` + n + `select i, 'http', 'succeeded', ` + at + `, ` + at + `, ` + at + `, 1 from n`,
		} {
			err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, sql)
				return err
			}, store.Lazy)
			if err != nil {
				return fmt.Errorf("make history: %w", err)
			}
		}
	}
	return nil
}

// sampleWhile measures publish to prepare again and again while something goes on.
// done is how many runs there were before it.
func (h *house) sampleWhile(ctx context.Context, done int, goesOn func() bool) (took []time.Duration, err error) {
	for n := done; goesOn(); n++ {
		if err := h.await(ctx, int64(n+1)); err != nil {
			return nil, err
		}
		time.Sleep(15 * time.Millisecond)
		began := make(chan time.Time, 4)
		fn := func() { began <- time.Now() }
		h.onPrepare.Store(&fn)
		asked := time.Now()
		if err := h.publish(ctx, laneName(0), n+1, 1); err != nil {
			return nil, err
		}
		took = append(took, (<-began).Sub(asked))
	}
	return took, nil
}

// prunes measures publish to prepare while nothing else goes on, while the hourly pass
// removes history, and while an administrator removes it, with shorter rests.
func (t table) prunes(ctx context.Context, pg, dir string, rows int, most time.Duration) error {
	h, err := open(ctx, pg, dir)
	if err != nil {
		return err
	}
	defer h.close()
	t.say("%d rows that are too old", rows)
	if err := h.history(ctx, rows); err != nil {
		return err
	}
	if err := h.deployAll(ctx, 1); err != nil {
		return err
	}
	h.run(ctx)
	t.line("rows that are too old", "%d", rows)
	done := 0
	phase := func(what string, goesOn func() bool) error {
		took, err := h.sampleWhile(ctx, done, goesOn)
		if err != nil || len(took) == 0 {
			return err
		}
		done += len(took)
		p50, p99 := quantiles(took)
		t.line("publish to prepare, "+what, "%.2f / %.2f / %.2f ms (%d times)", ms(p50), ms(p99), ms(slices.Max(took)), len(took))
		return nil
	}
	warm := time.Now().Add(3 * time.Second)
	if _, err := h.sampleWhile(ctx, 0, func() bool { done++; return time.Now().Before(warm) }); err != nil {
		return err
	}
	done--
	quiet := time.Now().Add(most / 4)
	if err := phase("nothing is pruned: p50 / p99 / longest", func() bool { return time.Now().Before(quiet) }); err != nil {
		return err
	}
	for _, how := range []struct {
		what    string
		options prune.Options
	}{
		{"the hourly pass", prune.Options{Rest: true, Budget: most}},
		{"`pawl prune`, which rests half of the time", prune.Options{Budget: most}},
	} {
		t.say("%s", how.what)
		end, begun := make(chan error, 1), time.Now()
		var result prune.Result
		go func() {
			var err error
			result, err = prune.New(prune.Config{DB: h.db}).Prune(ctx, how.options)
			end <- err
		}()
		var failed error
		err := phase("beside "+how.what, func() bool {
			select {
			case failed = <-end:
				return false
			default:
				return true
			}
		})
		if err != nil || failed != nil {
			return fmt.Errorf("%w %w", err, failed)
		}
		took := time.Since(begun)
		t.line("rows that went meanwhile", "%d in %.0f s, %.0f per second", result.Rows(), took.Seconds(), float64(result.Rows())/took.Seconds())
	}
	return nil
}
