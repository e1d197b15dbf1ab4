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
	Owner   *string       // whose jobs; nil is everybody's
	Hands   []Hand        // who gets them, one after the other
	PerLane int           // how many jobs of a lane are in hand at once
	Lease   time.Duration // how long a worker has them
	After   Lane          // the lane that was served last: the others come first
	Token   func() string
	Rate    *Rate  // nil: as fast as workers are
	Batch   *Batch // nil: as soon as there is one
}

// Hand is a worker with room for jobs.
type Hand struct {
	Worker string
	Limit  int // 0 is a batch, or one
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
	Hand  int // whose it is: the place in Claim.Hands
	Token string
	Until time.Time
}

// Found is what a claim found.
type Found struct {
	Jobs []Claimed
	Turn Lane // with which to go on
	More bool // there may be due jobs that it had no time to look at, or no room for
	Left bool // there are due jobs that it did not take

	Lanes []Lane // through which it went, if that were not all
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

// ClaimJobs gives due jobs into the hands of workers. Lanes take turns: each gives
// one job before any gives a second, so that none waits for another that is long. Of
// a lane, jobs are taken by priority, time and age.
//
// The caller holds the task, so that claims of it come one after the other: what
// is in hand for a lane does not grow meanwhile.
func (tx *Tx) ClaimJobs(ctx context.Context, c Claim) (Found, error) {
	tries, room := c.tries(), 0
	for _, places := range tries {
		room = max(room, roomOf(places))
	}
	due, lanes, seen, err := tx.dueServed(ctx, c, room)
	found := Found{Turn: c.After, More: seen != sawAll, Left: seen != sawAll || len(due) > 0, Lanes: lanes}
	if len(lanes) > 0 {
		found.Turn = lanes[len(lanes)-1]
	}
	if err != nil || len(due) == 0 {
		return found, err
	}
	for _, places := range tries {
		if found, err = tx.claimFor(ctx, c, places, due, seen, found); err != nil || len(found.Jobs) > 0 {
			break
		}
	}
	return found, err
}

// claimFor takes jobs for some of the hands.
func (tx *Tx) claimFor(ctx context.Context, c Claim, places []place, due []dueJob, seen sight, found Found) (Found, error) {
	limit, free := roomOf(places), freeLanes(due, c.PerLane)
	if c.Rate != nil {
		var err error
		if limit, err = tx.limitByRate(ctx, c, limit, free); err != nil {
			return found, err
		}
	}
	if seen == sawLanes && !slices.ContainsFunc(due, func(d dueJob) bool { return free[d.lane] > 0 }) { // however much waits in them
		found.More = false
	}
	picked := takeTurns(slices.Clone(due), free, c.After, limit)
	if c.Batch.holds(picked, limit, tx.Now) {
		return Found{Turn: c.After, Left: true}, nil
	}
	if len(picked) > 0 && len(picked) == limit {
		found.Turn, found.More = picked[len(picked)-1].lane, true
	}
	found.Left = found.More || len(picked) < len(due)
	var err error
	if found.Jobs, err = tx.lease(ctx, c, places, picked); err != nil {
		return found, err
	}
	if c.Rate != nil && len(found.Jobs) > 0 {
		err = tx.countStarts(ctx, c, found.Jobs)
	}
	found.More = found.More && (c.Rate == nil || c.Rate.PerLane || len(found.Jobs) > 0)
	return found, err
}

// place is a hand with room for so many jobs.
type place struct{ hand, room int }

func roomOf(places []place) (n int) {
	for _, p := range places {
		n += p.room
	}
	return n
}

// tries are the hands for which jobs are looked for together. Each that wants a batch
// gets one of its own: if one gets none, only one with less room may.
func (c Claim) tries() (out [][]place) {
	if c.Batch == nil {
		all := make([]place, len(c.Hands))
		for i, h := range c.Hands {
			all[i] = place{i, max(1, h.Limit)}
		}
		return [][]place{all}
	}
	least := c.Batch.Size + 1
	for i, h := range c.Hands {
		if room := max(1, min(cmp.Or(h.Limit, c.Batch.Size), c.Batch.Size)); room < least {
			least, out = room, append(out, []place{{i, room}})
		}
	}
	return out
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

// notInHand leaves out jobs whose earlier form is in hand, which only those with a key can
// have: they would take the places of others that can be had.
const notInHand = `(key is null or (select 1 from job_leases h where h.job_id = id) is null)`

func scanDue(row Scanner) (d dueJob, err error) {
	err = row.Scan(&d.id, &d.rev, &d.priority, &d.runAt, &d.lane.Owner, &d.lane.Name, &d.busy)
	return d, err
}

// sight is how much a claim saw of what is due.
type sight int

const (
	sawSome  sight = iota // of some lanes the first jobs
	sawLanes              // of every lane the first jobs
	sawAll                // all jobs
)

// dueServed reads jobs that are due: the oldest ones of each owner, and if these
// are not all, the first ones of the next lanes.
func (tx *Tx) dueServed(ctx context.Context, c Claim, limit int) (due []dueJob, lanes []Lane, seen sight, err error) {
	owners, err := tx.servedOwners(ctx, c)
	if err != nil || len(owners) == 0 {
		return nil, nil, sawAll, err
	}
	room := limit + claimRoom
	if due, err = tx.db.dialect.dueServed(ctx, tx, c.Task, owners, false, room, tx.Now); err != nil {
		return nil, nil, seen, fmt.Errorf("find due jobs: %w", err)
	}
	full, more := map[string]int{}, len(owners) == claimOwners
	for _, d := range due {
		full[d.lane.Owner]++
		more = more || full[d.lane.Owner] >= room
	}
	if !more {
		return due, nil, sawAll, nil
	}
	if lanes, err = tx.nextLanes(ctx, c); err != nil || len(lanes) == 0 {
		return due, nil, seen, err
	}
	each := max(1, min(c.PerLane, (limit+len(lanes)-1)/len(lanes)))
	heads, err := tx.db.dialect.dueServed(ctx, tx, c.Task, lanes, true, each, tx.Now)
	if err != nil {
		return nil, nil, seen, fmt.Errorf("find due jobs of lanes: %w", err)
	}
	known := make(map[int64]bool, len(due))
	for _, d := range due {
		known[d.id] = true
	}
	for _, d := range heads {
		if !known[d.id] {
			due = append(due, d)
		}
	}
	if len(lanes) < claimLanes {
		seen = sawLanes
	}
	return due, lanes, seen, nil
}

// servedOwners lists those whose jobs wait, beginning with the one whose turn it
// is.
func (tx *Tx) servedOwners(ctx context.Context, c Claim) ([]Lane, error) {
	if c.Owner != nil {
		return []Lane{{Owner: *c.Owner}}, nil
	}
	walk := func(name, from string) string {
		return name + `(n, owner) as (
			select 1, (select min(owner) from jobs where task = $1 and state = 2` + from + `)
			union all
			select w.n + 1, (select min(j.owner) from jobs j where j.task = $1 and j.state = 2 and j.owner > w.owner) from ` + name + ` w where w.owner is not null and w.n < $2
		)`
	}
	sql, args := `with recursive `+walk("w", "")+` select owner from w where owner is not null order by n`, []any{c.Task, claimOwners}
	if c.After.Owner != "" { // and around to it
		sql = `with recursive ` + walk("v", " and owner >= $3") + `, ` + walk("w", "") + `
			select owner from (select 0 as turn, n, owner from v union all select 1, n, owner from w where owner < $3) o where owner is not null order by turn, n`
		args = append(args, c.After.Owner)
	}
	rows, err := tx.Query(ctx, sql, args...)
	names, err := ScanAll(rows, err, "find owners of due jobs", ScanText)
	var out []Lane
	for _, name := range names[:min(len(names), claimOwners)] {
		out = append(out, Lane{Owner: name})
	}
	return out, err
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

// lease writes that jobs are in the hands of workers. One that was changed since it
// was read is left, and so is one whose earlier form is still in hand.
func (tx *Tx) lease(ctx context.Context, c Claim, places []place, picked []dueJob) ([]Claimed, error) {
	if len(picked) == 0 {
		return nil, nil
	}
	rows := make([][]any, len(picked))
	taken := make(map[int64]Claimed, len(picked))
	until := tx.Now.Add(c.Lease)
	at, room := 0, places[0].room
	for i, d := range picked {
		if room == 0 {
			at++
			room = places[at].room
		}
		room--
		t := Claimed{Hand: places[at].hand, Token: c.Token(), Until: until}
		rows[i], taken[d.id] = []any{d.id, d.rev, c.Hands[t.Hand].Worker, t.Token}, t
	}
	jobs, err := tx.db.dialect.leaseServed(ctx, tx, until, rows)
	if err != nil {
		return nil, fmt.Errorf("lease jobs: %w", err)
	}
	for _, j := range jobs {
		t := taken[j.ID]
		t.Job = j
		taken[j.ID] = t
	}
	out := make([]Claimed, 0, len(jobs))
	for _, d := range picked { // in their order
		if t := taken[d.id]; t.ID != 0 {
			out = append(out, t)
		}
	}
	return out, nil
}

const (
	leaseColumns = "job bigint, seen bigint, who text, sign text"
	// leaseJobs is followed by a set of leaseColumns and leasedRows.
	leaseJobs  = `update jobs as j set state = 3, started_at = $1, node = v.who from `
	leasedRows = ` where j.id = v.job and j.rev = v.seen and j.state + 0 = 2 and (select 1 from job_leases l where l.job_id = j.id) is null returning `
	putLeases  = `insert into job_leases (job_id, task, owner, lane, rev, token, worker, started_at, lease_until) `
)

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
