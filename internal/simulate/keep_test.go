package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/run"
)

// retain is somebody who keeps things for seconds only, and removes what is older.
func (w *world) retain(r *rand.Rand) {
	l := w.nodes[r.IntN(len(w.nodes))].now()
	if l == nil {
		return
	}
	w.mu.Lock()
	w.pruned = true
	w.counts["retention"]++
	w.mu.Unlock()
	keep := retention.Ages{}
	for _, k := range retention.Kinds() {
		keep[k] = pick(r, []time.Duration{time.Second, 10 * time.Second})
	}
	w.acts.Go(func() {
		done, err := prune.New(prune.Config{DB: l.db, Keep: keep}).Prune(l.ctx, prune.Options{Anew: true})
		w.note("retention at node %d removes %d rows: %v", l.n.index, done.Rows(), err)
		w.refused("retention", err)
	})
}

// fresh is how old the newest fetch may be.
const fresh = 45 * time.Second

// checkSilence holds that a source which has brought nothing for too long says so.
func (f *feed) checkSilence() {
	w := f.w
	w.mu.Lock()
	pruned, bound := w.pruned, fresh+w.skew+30*time.Second
	w.mu.Unlock()
	if pruned {
		return
	}
	since := f.since.Load()
	for _, row := range w.rows(`select ended_at||'' from runs where kind = 'source' and status = 'committed' and ended_at is not null order by id desc limit 1`) {
		since = max(since, atoi(row[0]))
	}
	if time.Since(time.UnixMilli(since)) < bound {
		return
	}
	for _, row := range w.rows(`select state||'', coalesce(cause, '')||'', coalesce(expected, '')||'' from lanes where kind = 'source'`) {
		if row[0] == string(run.Idle) && row[1] == "" {
			w.fail("the source has brought nothing since %s, and is told to be well (%s)", time.UnixMilli(since).UTC().Format(time.TimeOnly), row[2])
		}
	}
}

// checkNotices holds that people were told once of each breach, and once of its end.
func (f *feed) checkNotices() {
	if f.w.pruned || f.w.skew > 0 || f.paused { // ids go by the clock; and what is paused ends a breach without a word
		return
	}
	last := "notice." + lane.NoticeRecovered
	for _, row := range f.w.rows(`select action||'' from audit_log where action like 'notice.%' order by id`) {
		if row[0] == last {
			f.w.fail("people were told twice in a row: %s", last)
		}
		last = row[0]
	}
}
