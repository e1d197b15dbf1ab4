package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A lease is a row of job_leases: a job in the hands of a worker, until an instant
// and by a token that nobody else knows. Whoever ends a job deletes the lease with
// its token, in the transaction that writes the end: so an end is written once,
// and not by one whose lease was taken back meanwhile. A lease that is over and
// was not taken back is still good.

// leaseEnded is why a job failed whose worker did not answer.
const leaseEnded = "the worker's lease ended"

// Ending is how a worker says that a job ended.
type Ending struct {
	ID      int64
	Token   string
	Verdict Verdict // Done, Retry, Snooze or Fail
	Result  json.RawMessage
	Error   string
	RunAt   time.Time // for Retry and Snooze; zero is by the job's backoff
}

// Ends are what a worker says at once.
type Ends struct {
	Task    string
	Owner   *string // whose jobs it may end; nil is everybody's
	List    []Ending
	Keep    time.Duration // of results
	Backoff func(id int64, attempt int) time.Duration
}

// Ended is what became of an ending, or of the wish for more time. Code is empty
// if it counts, lease_lost if the job is not in the hands of who asked, and
// cancelled if the job is gone.
type Ended struct {
	Code     string
	Finished *Finished // nil if nothing was written
}

// The codes of Ended.
const (
	LeaseLost      = "lease_lost"
	LeaseCancelled = "cancelled"
)

// held is a lease as it was deleted.
type held struct {
	id, rev, started int64
	worker           string
}

func scanHeld(row Scanner) (h held, err error) {
	err = row.Scan(&h.id, &h.rev, &h.started, &h.worker)
	return h, err
}

const heldColumns = `job_id, rev, started_at, worker`

// EndJobs writes how jobs ended that were in the hands of a worker, and returns
// what became of each. Saying the same again counts and changes nothing.
func (tx *Tx) EndJobs(ctx context.Context, e Ends) ([]Ended, error) {
	if len(e.List) == 0 {
		return nil, nil
	}
	leases, gone, err := tx.endLeases(ctx, e)
	if err != nil {
		return nil, err
	}
	jobs, err := tx.leasedJobs(ctx, slices.DeleteFunc(slices.Clone(leases), func(h held) bool { _, was := gone[h.id]; return was }))
	if err != nil {
		return nil, err
	}
	maps.Copy(jobs, gone)
	byID := make(map[int64]held, len(leases))
	for _, h := range leases {
		byID[h.id] = h
	}
	out := make([]Ended, len(e.List))
	var done []*Finished
	results := map[int64]Ending{}
	var unknown []int
	for i, end := range e.List {
		h, mine := byID[end.ID]
		j, there := jobs[end.ID]
		switch {
		case !mine:
			unknown = append(unknown, i)
			continue
		case !there:
			out[i].Code = LeaseCancelled
			continue
		}
		f := tx.verdictOf(e, end, h, j)
		out[i].Finished = f
		if _, was := gone[end.ID]; was {
			continue
		}
		if f.Verdict == Done {
			done, results[end.ID] = append(done, f), end
			continue
		}
		if err := tx.finishOne(ctx, *f, h.worker); err != nil {
			return nil, fmt.Errorf("end job %d: %w", end.ID, err)
		}
	}
	if err := tx.completeLeased(ctx, e, done, byID, results); err != nil {
		return nil, err
	}
	return out, tx.recognise(ctx, e, unknown, out)
}

// endLeases deletes leases, and returns them. Jobs that were removed on the way, with
// their outcomes kept, are in gone.
func (tx *Tx) endLeases(ctx context.Context, e Ends) (leases []held, gone map[int64]Job, err error) {
	if !slices.ContainsFunc(e.List, func(end Ending) bool { return end.Verdict != Done }) {
		leases, gone, err = tx.db.dialect.completeServed(ctx, tx, e)
		if err != nil || leases != nil {
			return leases, gone, err
		}
	}
	rows := make([][]any, len(e.List))
	for i, end := range e.List {
		rows[i] = []any{end.ID, end.Token}
	}
	table, args := tx.Rowset([]any{e.Task, e.Owner}, "job bigint, sign text", rows)
	found, err := tx.Query(ctx, `delete from job_leases as l where `+leaseOf+` and (job_id, token) in (select v.job, v.sign from `+table+`) returning `+heldColumns, args...)
	leases, err = ScanAll(found, err, "end leases", scanHeld)
	return leases, nil, err
}

// leaseOf is said so that PostgreSQL, which may know nothing of the leases, takes
// the index of their ids and not that of their task: with that one it would compare all
// leases with all that is wanted.
const leaseOf = `case when l.task = $1 and l.owner = coalesce($2, l.owner) then true else false end`

// resultOf is a result as it is stored.
func (end Ending) resultOf() *string { return NullText(string(end.Result)) }

// leasedJobs reads the jobs of leases, and keeps others from changing them.
func (tx *Tx) leasedJobs(ctx context.Context, leases []held) (map[int64]Job, error) {
	out := make(map[int64]Job, len(leases))
	if len(leases) == 0 {
		return out, nil
	}
	rows := make([][]any, len(leases))
	for i, h := range leases {
		rows[i] = []any{h.id}
	}
	table, args := tx.Rowset(nil, "job bigint", rows)
	jobs, err := scanJobs(tx.Query(ctx, `select `+jobColumns+` from jobs j where j.id in (select v.job from `+table+`)`+tx.ForUpdate(), args...))
	for _, j := range jobs {
		out[j.ID] = j
	}
	return out, err
}

// verdictOf turns what a worker said into what is written. A job that was put in
// the place of the one that ran stays as it is: its revision is another.
func (tx *Tx) verdictOf(e Ends, end Ending, h held, j Job) *Finished {
	j.Rev = h.rev
	f := &Finished{Job: &j, Verdict: end.Verdict, RunAt: end.RunAt, Error: end.Error, StartedAt: FromMillis(h.started), EndedAt: tx.Now, Record: true}
	if f.Verdict == Retry && j.MaxAttempts > 0 && j.Attempt+1 >= j.MaxAttempts {
		f.Verdict = Fail
	}
	if f.Verdict == Retry && f.RunAt.IsZero() {
		f.RunAt = tx.Now.Add(e.Backoff(j.ID, j.Attempt+1))
	}
	if f.Verdict == Snooze && f.RunAt.IsZero() {
		f.RunAt = j.RunAt // as it was: at once, and before what came later
	}
	return f
}

// completeLeased removes jobs that succeeded, and keeps their outcomes.
func (tx *Tx) completeLeased(ctx context.Context, e Ends, done []*Finished, leases map[int64]held, results map[int64]Ending) error {
	if len(done) == 0 {
		return nil
	}
	ran, history, kept := make([][]any, len(done)), make([][]any, len(done)), make([][]any, len(done))
	until := Millis(tx.Now.Add(e.Keep))
	for i, f := range done {
		j := f.Job
		ran[i] = []any{j.ID, j.Rev}
		history[i] = []any{j.ID, j.Task, j.Owner, NullText(j.Lane), NullText(j.Key), Millis(j.RunAt), Millis(f.StartedAt), int64(j.Attempt + 1), leases[j.ID].worker}
		kept[i] = []any{j.ID, results[j.ID].Token, results[j.ID].resultOf(), until}
	}
	table, args := tx.Rowset(nil, "job bigint, seen bigint", ran)
	rows, err := tx.Query(ctx, `delete from jobs where (id, rev) in (select v.job, v.seen from `+table+`) and (kept_at is null or kept_at < started_at) returning id`, args...)
	gone, err := ScanAll(rows, err, "complete jobs", ScanID)
	if err != nil {
		return err
	}
	if len(gone) < len(done) { // others were put in their place
		was := setOf(gone)
		for _, f := range done {
			if was[f.Job.ID] {
				continue
			}
			if err := tx.deleteRan(ctx, *f); err != nil {
				return fmt.Errorf("complete job %d: %w", f.Job.ID, err)
			}
		}
	}
	table, args = tx.Rowset([]any{Millis(tx.Now)}, "job bigint, what text, whose text, name text, tag text, at bigint, began bigint, tries bigint, who text", history)
	if _, err := tx.Exec(ctx, `insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
		select v.job, v.what, v.whose, v.name, v.tag, 'succeeded', v.at, v.began, $1, v.tries, null, v.who from `+table+` where true`+recordConflict, args...); err != nil {
		return fmt.Errorf("record jobs: %w", err)
	}
	table, args = tx.Rowset(nil, "job bigint, sign text, what text, until_ bigint", kept)
	if _, err := tx.Exec(ctx, `insert into job_results (job_id, token, result, keep_until) select v.job, v.sign, v.what, v.until_ from `+table+` where true`+resultConflict, args...); err != nil {
		return fmt.Errorf("keep results: %w", err)
	}
	return nil
}

const resultConflict = ` on conflict (job_id) do update set token = excluded.token, result = excluded.result, keep_until = excluded.keep_until`

// recognise finds those among endings without a lease that were written before:
// the answer may have been lost.
func (tx *Tx) recognise(ctx context.Context, e Ends, unknown []int, out []Ended) error {
	if len(unknown) == 0 {
		return nil
	}
	rows := make([][]any, len(unknown))
	for i, k := range unknown {
		rows[i] = []any{e.List[k].ID, e.List[k].Token}
	}
	table, args := tx.Rowset([]any{e.Task, e.Owner}, "job bigint, sign text", rows)
	found, err := tx.Query(ctx, `select r.job_id from `+table+` join job_results r on r.job_id = v.job and r.token = v.sign
		join job_history h on h.id = r.job_id and h.task = $1 and h.owner = coalesce($2, h.owner)`, args...)
	ids, err := ScanAll(found, err, "find results", ScanID)
	known := setOf(ids)
	for _, k := range unknown {
		if e.List[k].Verdict != Done || !known[e.List[k].ID] {
			out[k].Code = LeaseLost
		}
	}
	return err
}

func setOf(ids []int64) map[int64]bool {
	out := make(map[int64]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	return out
}

// Signed names a lease.
type Signed struct {
	ID    int64
	Token string
}

// ExtendLeases gives a worker more time, and tells of each lease whether it has it.
func (tx *Tx) ExtendLeases(ctx context.Context, task string, owner *string, list []Signed, until time.Time) ([]Ended, error) {
	if len(list) == 0 {
		return nil, nil
	}
	rows := make([][]any, len(list))
	for i, s := range list {
		rows[i] = []any{s.ID, s.Token}
	}
	table, args := tx.Rowset([]any{task, owner, Millis(until)}, "job bigint, sign text", rows)
	found, err := tx.Query(ctx, `update job_leases as l set lease_until = $3 where `+leaseOf+` and (job_id, token) in (select v.job, v.sign from `+table+`) returning job_id`, args...)
	mine, err := ScanAll(found, err, "extend leases", ScanID)
	if err != nil {
		return nil, err
	}
	table, args = tx.Rowset(nil, "job bigint, sign text", rows)
	found, err = tx.Query(ctx, `select j.id from `+table+` join jobs j on j.id = v.job`, args...)
	there, err := ScanAll(found, err, "find jobs", ScanID)
	out := make([]Ended, len(list))
	held, present := setOf(mine), setOf(there)
	for i, s := range list {
		switch {
		case !held[s.ID]:
			out[i].Code = LeaseLost
		case !present[s.ID]:
			out[i].Code = LeaseCancelled
		}
	}
	return out, err
}

// TakeBack ends up to limit leases of a task that are over. It counts an attempt
// for each job, which is due at once as it was before, or failed if that was the
// last one.
func (tx *Tx) TakeBack(ctx context.Context, task string, limit int) ([]Finished, error) {
	found, err := tx.Query(ctx, `delete from job_leases where job_id in (
		select job_id from job_leases where task = $1 and lease_until <= $2 order by lease_until limit $3`+tx.SkipLocked()+`) returning `+heldColumns, task, Millis(tx.Now), limit)
	leases, err := ScanAll(found, err, "take leases back", scanHeld)
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	slices.SortFunc(leases, func(a, b held) int { return cmp.Compare(a.id, b.id) })
	jobs, err := tx.leasedJobs(ctx, leases)
	if err != nil {
		return nil, err
	}
	var out []Finished
	for _, h := range leases {
		j, there := jobs[h.id]
		if !there || j.Rev != h.rev { // cancelled, or another one is in its place
			continue
		}
		f := tx.verdictOf(Ends{}, Ending{Verdict: Retry, RunAt: j.RunAt, Error: leaseEnded}, h, j)
		if err := tx.finishOne(ctx, *f, h.worker); err != nil {
			return nil, fmt.Errorf("take job %d back: %w", h.id, err)
		}
		out = append(out, *f)
	}
	return out, nil
}

// DropLeases forgets the leases of a task, and what it handed out of late.
func (tx *Tx) DropLeases(ctx context.Context, task string) error {
	_, err := tx.Exec(ctx, `delete from job_leases where task = $1`, task)
	if err == nil {
		_, err = tx.Exec(ctx, `delete from worker_starts where task = $1`, task)
	}
	return err
}

// HasServed reports whether jobs of a task wait for a worker or are in the hands
// of one.
func (tx *Tx) HasServed(ctx context.Context, task string) (bool, error) {
	var one int
	err := tx.QueryRow(ctx, `select 1 where exists (select 1 from jobs where task = $1 and state = 2)
		or exists (select 1 from job_leases l join jobs j on j.id = l.job_id and j.rev = l.rev where l.task = $1)`, task).Scan(&one)
	if errors.Is(err, ErrNoRow) {
		return false, nil
	}
	return err == nil, err
}

// PruneResults forgets up to limit results whose time is over.
func (db *DB) PruneResults(ctx context.Context, now time.Time, limit int) (n int64, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		n, err = tx.Exec(ctx, `delete from job_results where job_id in (select job_id from job_results where keep_until <= $1 order by keep_until limit $2)`, Millis(now), limit)
		return err
	})
	return n, err
}
