package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// The states of rows in the table of jobs. Jobs of tasks that programs of users
// serve have their own, so that no node's fetch sees them, and so that they cost
// the others nothing: their indexes are partial.
const (
	jobWaiting = 0 // waits or runs in a node
	jobServed  = 2 // waits for a worker of a user
	jobLeased  = 3 // is in the hands of one; see job_lease.go
)

// servedBucket is that of jobs of tasks that programs of users serve. No node
// owns it.
const servedBucket = -1

// Served reports whether a program of a user does the job.
func (j *Job) Served() bool { return j.Bucket < 0 }

// Claim asks for jobs of a task that a program of a user serves.
type Claim struct {
	Task    string
	Owner   *string // whose jobs; nil is everybody's
	Worker  string
	Limit   int
	PerLane int           // how many jobs of a lane are in hand at once
	Lease   time.Duration // how long the worker has them
	After   Lane          // the lane that was served last: the others come first
	Token   func() string
	Rate    *Rate  // nil: as fast as workers are
	Batch   *Batch // nil: as soon as there is one
}

// Batch makes jobs wait for each other: a claim gets none until there are so many, or
// until the first has waited for so long.
type Batch struct {
	Size int
	Wait time.Duration
}

// Claimed is a job in the hands of a worker.
type Claimed struct {
	Job
	Token string
	Until time.Time
}

const (
	// claimOwners and claimLanes bound what one claim looks at, when more is due
	// than it can take: the next one goes on behind.
	claimOwners = 32
	claimLanes  = 64
	// claimRoom is how much more a claim looks at than it takes, because lanes may
	// be full.
	claimRoom = 64
)

// ClaimJobs gives due jobs into the hands of a worker, and returns the lane with
// which to go on. Lanes take turns: each gives one job before any gives a second,
// so that none waits for another that is long. Of a lane, jobs are taken by
// priority, time and age. More says that there may be due jobs which it had no
// time to look at.
//
// The caller holds the task, so that claims of it come one after the other: what
// is in hand for a lane does not grow meanwhile.
func (tx *Tx) ClaimJobs(ctx context.Context, c Claim) (taken []Claimed, turn Lane, more bool, err error) {
	due, turn, more, err := tx.dueServed(ctx, c)
	if err != nil || len(due) == 0 {
		return nil, turn, more, err
	}
	free := freeLanes(due, c.PerLane)
	if c.Rate != nil {
		if err := tx.limitByRate(ctx, &c, free); err != nil {
			return nil, turn, more, err
		}
	}
	picked := takeTurns(due, free, c.After, c.Limit)
	if c.Batch.holds(picked, c.Limit, tx.Now) {
		return nil, c.After, false, nil
	}
	if len(picked) > 0 && len(picked) == c.Limit {
		turn, more = picked[len(picked)-1].lane, true
	}
	taken, err = tx.lease(ctx, c, picked)
	if err == nil && c.Rate != nil && len(taken) > 0 {
		err = tx.countStarts(ctx, c, taken)
	}
	return taken, turn, more && (c.Rate == nil || len(taken) > 0), err
}

// until is when jobs need not wait for others any more.
func (b *Batch) until(picked []dueJob) time.Time {
	first := picked[0].runAt
	for _, d := range picked {
		first = min(first, d.runAt)
	}
	return FromMillis(first).Add(b.Wait)
}

// holds reports whether jobs wait for others to come.
func (b *Batch) holds(picked []dueJob, limit int, now time.Time) bool {
	return b != nil && len(picked) > 0 && len(picked) < min(b.Size, limit) && b.until(picked).After(now)
}

// dueJob is what has to be known of a job to decide whether it is taken.
type dueJob struct {
	id, rev  int64
	priority int
	runAt    int64
	lane     Lane
	busy     int // how many of its lane are in hand
}

// dueColumns are read by scanDue. Jobs without a lane do not wait for each other.
const dueColumns = `j.id, j.rev, j.priority, j.run_at, j.owner, coalesce(j.lane, ''),
	case when j.lane is null then 0 else (select count(*) from job_leases l where l.task = $1 and l.owner = j.owner and l.lane = j.lane) end`

func scanDue(row Scanner) (d dueJob, err error) {
	err = row.Scan(&d.id, &d.rev, &d.priority, &d.runAt, &d.lane.Owner, &d.lane.Name, &d.busy)
	return d, err
}

// dueServed reads jobs that are due: the oldest ones of each owner, and if these
// are not all, the first ones of the next lanes.
func (tx *Tx) dueServed(ctx context.Context, c Claim) (due []dueJob, turn Lane, more bool, err error) {
	turn = c.After
	owners, err := tx.servedOwners(ctx, c)
	if err != nil || len(owners) == 0 {
		return nil, turn, false, err
	}
	room := c.Limit + claimRoom
	if due, err = tx.db.dialect.dueServed(ctx, tx, c.Task, owners, false, room, tx.Now); err != nil {
		return nil, turn, false, fmt.Errorf("find due jobs: %w", err)
	}
	full := map[string]int{}
	for _, d := range due {
		full[d.lane.Owner]++
		more = more || full[d.lane.Owner] >= room
	}
	if more = more || len(owners) == claimOwners; !more {
		return due, turn, false, nil
	}
	lanes, err := tx.nextLanes(ctx, c)
	if err != nil || len(lanes) == 0 {
		return due, turn, more, err
	}
	turn = lanes[len(lanes)-1]
	each := max(1, min(c.PerLane, (c.Limit+len(lanes)-1)/len(lanes)))
	heads, err := tx.db.dialect.dueServed(ctx, tx, c.Task, lanes, true, each, tx.Now)
	if err != nil {
		return nil, turn, more, fmt.Errorf("find due jobs of lanes: %w", err)
	}
	seen := make(map[int64]bool, len(due))
	for _, d := range due {
		seen[d.id] = true
	}
	for _, d := range heads {
		if !seen[d.id] {
			due = append(due, d)
		}
	}
	return due, turn, more, nil
}

// servedOwners lists those whose jobs wait, beginning with the one whose turn it
// is.
func (tx *Tx) servedOwners(ctx context.Context, c Claim) ([]Lane, error) {
	if c.Owner != nil {
		return []Lane{{Owner: *c.Owner}}, nil
	}
	var out []Lane
	for _, from := range []string{c.After.Owner, ""} {
		rows, err := tx.Query(ctx, `with recursive w(n, owner) as (
			select 1, (select min(owner) from jobs where task = $1 and state = 2 and owner >= $2)
			union all
			select w.n + 1, (select min(j.owner) from jobs j where j.task = $1 and j.state = 2 and j.owner > w.owner) from w where w.owner is not null and w.n < $3
		) select owner from w where owner is not null`, c.Task, from, claimOwners)
		names, err := ScanAll(rows, err, "find owners of due jobs", ScanText)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if l := (Lane{Owner: name}); len(out) < claimOwners && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
		if from == "" || len(out) >= claimOwners {
			break
		}
	}
	return out, nil
}

// nextLanes lists lanes in which jobs wait, behind the one that was served last
// and around to it.
func (tx *Tx) nextLanes(ctx context.Context, c Claim) ([]Lane, error) {
	out, err := tx.lanesAfter(ctx, c, c.After, claimLanes)
	if err != nil || len(out) == claimLanes || c.After == (Lane{}) {
		return out, err
	}
	first, err := tx.lanesAfter(ctx, c, Lane{}, claimLanes-len(out))
	for _, l := range first {
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out, err
}

// lanesAfter goes from lane to lane by the index, without reading the jobs in
// between. Jobs without a lane are one, with an empty name.
func (tx *Tx) lanesAfter(ctx context.Context, c Claim, after Lane, limit int) ([]Lane, error) {
	next := func(owner, lane string) string {
		return `(select coalesce(
			(select i.id from jobs i where i.task = $1 and i.state = 2 and i.owner = ` + owner + ` and coalesce(i.lane, '') > ` + lane + ` order by coalesce(i.lane, '') limit 1),
			(select i.id from jobs i where i.task = $1 and i.state = 2 and i.owner > ` + owner + ` and $5 = 1 order by i.owner, coalesce(i.lane, '') limit 1)))`
	}
	first := next("$2", "$3")
	everybody, from := int64(1), `i.owner >= $2 and $3 = ''`
	if c.Owner != nil {
		everybody, from = 0, `i.owner = $2 and $3 = ''`
		if after.Owner != *c.Owner {
			after = Lane{Owner: *c.Owner}
		}
	}
	if after.Name == "" { // the jobs without a lane come first
		first = `(select i.id from jobs i where i.task = $1 and i.state = 2 and ` + from + ` order by i.owner, coalesce(i.lane, '') limit 1)`
	}
	rows, err := tx.Query(ctx, `with recursive w(n, owner, lane) as (
		select 1, j.owner, coalesce(j.lane, '') from jobs j where j.id = `+first+`
		union all
		select w.n + 1, j.owner, coalesce(j.lane, '') from w join jobs j on j.id = `+next("w.owner", "w.lane")+` where w.n < $4
	) select owner, lane from w`, c.Task, after.Owner, after.Name, limit, everybody)
	return ScanAll(rows, err, "find lanes", func(row Scanner) (l Lane, err error) { return l, row.Scan(&l.Owner, &l.Name) })
}

// freeLanes tells how many more jobs of each lane may be in hand. What is in hand
// was counted in the statement that found the jobs: one that is given back
// meanwhile, and comes first, would be passed over otherwise.
func freeLanes(due []dueJob, perLane int) map[Lane]int {
	free := map[Lane]int{}
	for _, d := range due {
		most := perLane - d.busy
		if d.lane.Name == "" {
			most = unlimited
		}
		if n, known := free[d.lane]; !known || most < n {
			free[d.lane] = most
		}
	}
	return free
}

// takeTurns picks up to limit jobs: by priority, and within one the lanes take
// turns, beginning behind the one that was served last.
func takeTurns(due []dueJob, free map[Lane]int, after Lane, limit int) (picked []dueJob) {
	slices.SortFunc(due, func(a, b dueJob) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.id, b.id))
	})
	for len(due) > 0 && len(picked) < limit {
		level := due[0].priority
		n := slices.IndexFunc(due, func(d dueJob) bool { return d.priority != level })
		if n < 0 {
			n = len(due)
		}
		var lanes []Lane
		waiting := map[Lane][]dueJob{}
		for _, d := range due[:n] {
			if waiting[d.lane] == nil {
				lanes = append(lanes, d.lane)
			}
			waiting[d.lane] = append(waiting[d.lane], d)
		}
		slices.SortFunc(lanes, func(a, b Lane) int {
			return cmp.Or(cmp.Compare(boolInt(!behind(a, after)), boolInt(!behind(b, after))), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
		})
		picked = inTurn(picked, lanes, waiting, free, limit)
		due = due[n:]
	}
	return picked
}

func behind(l, after Lane) bool {
	return l.Owner > after.Owner || l.Owner == after.Owner && l.Name > after.Name
}

// inTurn takes one job of each lane, then a second one, and so on.
func inTurn(picked []dueJob, lanes []Lane, waiting map[Lane][]dueJob, free map[Lane]int, limit int) []dueJob {
	for len(lanes) > 0 {
		left := lanes[:0]
		for _, l := range lanes {
			if len(picked) == limit {
				return picked
			}
			if free[l] <= 0 {
				continue
			}
			free[l]--
			picked = append(picked, waiting[l][0])
			if waiting[l] = waiting[l][1:]; len(waiting[l]) > 0 {
				left = append(left, l)
			}
		}
		lanes = left
	}
	return picked
}

// lease writes that jobs are in the hands of a worker. One that was changed
// since it was read is left, and so is one whose earlier form is still in hand.
func (tx *Tx) lease(ctx context.Context, c Claim, picked []dueJob) ([]Claimed, error) {
	if len(picked) == 0 {
		return nil, nil
	}
	rows := make([][]any, len(picked))
	place := make(map[int64]int, len(picked))
	for i, d := range picked {
		rows[i], place[d.id] = []any{d.id, d.rev}, i
	}
	table, args := tx.Rowset([]any{Millis(tx.Now), c.Worker}, "job bigint, seen bigint", rows)
	jobs, err := scanJobs(tx.Query(ctx, `update jobs as j set state = 3, started_at = $1, node = $2 from `+table+`
		where j.id = v.job and j.rev = v.seen and j.state = 2 and (select 1 from job_leases l where l.job_id = j.id) is null returning `+jobColumns, args...))
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	until := tx.Now.Add(c.Lease)
	out, leases := make([]Claimed, len(jobs)), make([][]any, len(jobs))
	for i, j := range jobs {
		out[i] = Claimed{j, c.Token(), until}
		leases[i] = []any{j.ID, j.Owner, NullText(j.Lane), j.Rev, out[i].Token}
	}
	table, args = tx.Rowset([]any{c.Task, c.Worker, Millis(tx.Now), Millis(until)}, "id bigint, whose text, name text, rev_ bigint, sign text", leases)
	_, err = tx.Exec(ctx, `insert into job_leases (job_id, task, owner, lane, rev, token, worker, started_at, lease_until)
		select v.id, $1, v.whose, v.name, v.rev_, v.sign, $2, $3, $4 from `+table+` where true`, args...)
	return out, err
}

// NextServed is the earliest instant after the present at which there may be
// something to claim: a job comes due, or a lease ends. Zero if there is none.
func (tx *Tx) NextServed(ctx context.Context, c Claim) (time.Time, error) {
	owners, err := tx.servedOwners(ctx, c)
	if err != nil {
		return time.Time{}, err
	}
	var at *int64
	err = tx.QueryRow(ctx, `select min(lease_until) from job_leases where task = $1`, c.Task).Scan(&at)
	if err != nil {
		return time.Time{}, err
	}
	first := FromNullMillis(at)
	if c.Rate != nil {
		next, err := tx.nextAllowed(ctx, c.Task)
		if err != nil {
			return first, err
		}
		first = earlier(first, next)
	}
	if len(owners) == 0 {
		return first, nil
	}
	if c.Batch != nil { // the one that waits longest, for others or for its lane
		next, err := tx.db.dialect.nextServed(ctx, tx, c.Task, owners, tx.Now.Add(-c.Batch.Wait))
		if err != nil {
			return first, err
		}
		if !next.IsZero() {
			first = earlier(first, next.Add(c.Batch.Wait))
		}
	}
	next, err := tx.db.dialect.nextServed(ctx, tx, c.Task, owners, tx.Now)
	return earlier(first, next), err
}

// earlier is the first of two instants, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
