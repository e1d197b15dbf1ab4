//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calmWithin is how long after the last fault and the last request everything
// must be done: retries and questions about lost calls take their time.
const calmWithin = 150 * time.Second

// judge waits for the end of all work and compares what was asked for, what the
// database says and what arrived outside.
func (r *run) judge(ctx context.Context) {
	begun := time.Now()
	r.awaitCalm(ctx)
	r.report.note("%s: all was done %s after the last fault", r.name, time.Since(begun).Round(100*time.Millisecond))
	r.judgeCluster(ctx)
	r.judgeJobs(ctx)
	r.judgeRepeats()
	r.judgeLanes()
	r.judgeEvents(ctx)
	r.judgeSlots(ctx)
	r.judgeSources(ctx)
	r.judgeWords(ctx)
	r.judgeLogs()
}

type counted struct{ N int64 }

// awaitCalm waits until nothing is due that has not run.
func (r *run) awaitCalm(ctx context.Context) {
	waiting := map[string]string{
		"jobs":              `select count(*) from jobs where task = 'http' and state = 0`,
		"events":            `select count(*) from events where status in ('pending', 'reserved')`,
		"unresolved calls":  `select count(*) from mutations where state in ('in_flight', 'needs_reconcile', 'indeterminate')`,
		"runs of schedules": `select count(*) from schedule_runs where disposition is null and scheduled_for < (extract(epoch from now()) * 1000 - 5000)`,
	}
	r.forgive(ctx)
	var left []string
	for deadline := time.Now().Add(calmWithin); time.Now().Before(deadline); {
		left = left[:0]
		for _, what := range sortedKeys(waiting) {
			n, err := query[counted](ctx, r.db, waiting[what])
			if err != nil {
				left = append(left, what+": "+err.Error())
			} else if n[0].N > 0 {
				left = append(left, fmt.Sprintf("%d %s", n[0].N, what))
			}
		}
		if got, want := r.feedRows(ctx); got != want {
			left = append(left, fmt.Sprintf("%d items of the feed, of %d", got, want))
		}
		if len(left) == 0 {
			return
		}
		r.resumeAll(ctx)
		if !pause(ctx, 500*time.Millisecond) {
			return
		}
	}
	r.find("not done within %s: %s", calmWithin, strings.Join(left, ", "))
}

// forgive is the person who knows that the API works again: a source may have failed
// so often that it waits for longer than anybody here does. One that is at work and fails once
// more waits for two minutes.
func (r *run) forgive(ctx context.Context) {
	for _, name := range []string{r.feedName(), r.tableName()} {
		if _, err := r.call(ctx, r.anyNode(), "POST", "/api/v1/sources/"+name+"/reset", nil, nil, ""); err != nil {
			r.find("reset %s: %v", name, err)
		}
	}
}

// judgeCluster: every share of the work is held by a living node.
func (r *run) judgeCluster(ctx context.Context) {
	type owner struct {
		Node string
		N    int64
	}
	owners, err := query[owner](ctx, r.db, `select coalesce(node, ''), count(*) from buckets group by 1`)
	if err != nil {
		r.find("read the owners of buckets: %v", err)
		return
	}
	var living []string
	held := 0
	for _, n := range r.nodes {
		living = append(living, n.file("node.id"))
		held += r.metric(ctx, n, "pawl_queue_buckets ")
	}
	total := 0
	for _, o := range owners {
		total += int(o.N)
		if !slices.Contains(living, o.Node) {
			r.find("%d buckets belong to nobody who lives (%q)", o.N, o.Node)
		}
	}
	if held != total {
		r.find("%d of %d buckets are held", held, total)
	}
}

func (r *run) metric(ctx context.Context, n *node, name string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/metrics", nil)
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := r.client.Do(req)
	if err != nil {
		r.find("metrics of %s: %v", n.name, err)
		return 0
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			f, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int(f)
		}
	}
	return 0
}

// judgeJobs: what was acknowledged was done once, what was not at most once.
func (r *run) judgeJobs(ctx context.Context) {
	type ended struct {
		ID    string
		State string
	}
	rows, err := query[ended](ctx, r.db, `select id::text, state from job_history where task = 'http'`)
	if err != nil {
		r.find("read the jobs that ended: %v", err)
		return
	}
	states := map[string]string{}
	for _, row := range rows {
		states[row.ID] = row.State
	}
	r.eachPromise([]string{"probe/", "job/"}, func(p *promise, a *act) {
		if len(p.ids) > 1 {
			r.find("%s was acknowledged as several jobs: %v", p.what, p.ids)
		}
		for _, id := range p.ids {
			if states[id] != "succeeded" {
				r.find("%s is job %s, which ended as %q", p.what, id, states[id])
			}
		}
		keys := a.keys()
		if len(keys) > 1 {
			r.find("%s was sent under several keys: %v", p.what, keys)
		}
		if len(keys) == 1 && len(p.ids) == 1 && keys[0] != "job-"+p.ids[0] {
			r.find("%s was acknowledged as job %s and sent as %s", p.what, p.ids[0], keys[0])
		}
		r.judgeEffects(p, a)
	})
}

func (r *run) judgeEffects(p *promise, a *act) {
	switch {
	case p.acked && a.effects == 0:
		r.find("%s was acknowledged and never done", p.what)
	case a.effects > 1:
		r.find("%s was done %d times", p.what, a.effects)
	}
	r.ledger.count(strings.SplitN(p.what, "/", 2)[0])
	if p.acked {
		r.ledger.count(strings.SplitN(p.what, "/", 2)[0] + " acknowledged")
	}
}

func (a *act) keys() []string {
	var keys []string
	for _, at := range a.arrivals {
		if !slices.Contains(keys, at.key) {
			keys = append(keys, at.key)
		}
	}
	return keys
}

// eachPromise goes through what was asked for, with what arrived of it.
func (r *run) eachPromise(kinds []string, do func(*promise, *act)) {
	r.ledger.mu.Lock()
	var all []*promise
	for _, what := range sortedKeys(r.ledger.promises) {
		for _, kind := range kinds {
			if strings.HasPrefix(what, kind) {
				all = append(all, r.ledger.promises[what])
			}
		}
	}
	r.ledger.mu.Unlock()
	for _, p := range all {
		r.world.mu.Lock()
		a := r.world.acts[p.what]
		r.world.mu.Unlock()
		if a == nil {
			a = &act{}
		}
		do(p, a)
	}
}

// judgeRepeats: what was answered is not asked for again, unless nobody can have
// known that it was answered.
func (r *run) judgeRepeats() {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, what := range sortedKeys(r.world.acts) {
		a := r.world.acts[what]
		for i := 1; i < len(a.arrivals); i++ {
			before, again := a.arrivals[i-1], a.arrivals[i]
			if !before.answered {
				r.report.repeat("unanswered")
				continue
			}
			if !r.explained(before.at, again.at) {
				r.find("%s was answered at %s and asked for again at %s, and no node was dead, frozen or cut off", what, clock(before.at), clock(again.at))
				continue
			}
			r.report.repeat("answered, and its node was lost")
		}
	}
}

// judgeLanes: one at a time, unless a frozen or cut-off node holds the other.
func (r *run) judgeLanes() {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, o := range r.world.overlaps {
		if !strings.HasPrefix(o.lane, r.name) {
			continue // in no lane
		}
		if !r.explained(o.from, o.at) {
			r.find("two calls of %s at once at %s: %s since %s, and %s", o.lane, clock(o.at), o.first, clock(o.from), o.second)
			continue
		}
		r.report.repeat("overlap with a lost node")
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// judgeEvents: an event is there once, consumed, and its call was made once.
func (r *run) judgeEvents(ctx context.Context) {
	type event struct {
		Message string
		Status  string
		N       int64
	}
	rows, err := query[event](ctx, r.db, `select message_id, min(status), count(*) from events where topic = 'order' group by 1`)
	if err != nil {
		r.find("read the events: %v", err)
		return
	}
	there := map[string]event{}
	for _, e := range rows {
		there["order/"+e.Message] = e
		if e.N != 1 || e.Status != "consumed" {
			r.find("event %s is there %d times, %s", e.Message, e.N, e.Status)
		}
	}
	r.eachPromise([]string{"order/"}, func(p *promise, a *act) {
		_, known := there[p.what]
		if p.acked && !known {
			r.find("%s was acknowledged and is gone", p.what)
		}
		if known && a.effects != 1 {
			r.find("%s is there and was done %d times", p.what, a.effects)
		}
		if keys := a.keys(); len(keys) > 1 && a.effects != 1 {
			r.find("%s was sent under several keys: %v", p.what, keys)
		}
		r.judgeEffects(p, a)
	})
	type doubled struct {
		Message string
		N       int64
	}
	twice, err := query[doubled](ctx, r.db, `select message_id, count(*) from events where topic = 'entered' group by 1 having count(*) > 1`)
	if err != nil || len(twice) > 0 {
		r.find("events of consumers are there twice: %v %v", twice, err)
	}
	counts, err := query[counted](ctx, r.db, `select count(*) from events where topic = 'entered' and status = 'consumed'`)
	if err != nil || counts[0].N != int64(len(rows)) {
		r.find("%d events were consumed, and %v of those that follow them (%v)", len(rows), counts, err)
	}
}

// judgeSlots: a slot for every minute, run once.
func (r *run) judgeSlots(ctx context.Context) {
	type slot struct {
		Schedule    string
		For         int64
		Through     int64
		Trigger     string
		Status      string
		Disposition string
	}
	rows, err := query[slot](ctx, r.db, `select schedule_id, scheduled_for, coalesce(through_at, scheduled_for), trigger, status, coalesce(disposition, '') from schedule_runs
		where scheduled_for < (extract(epoch from now()) * 1000 - 5000) order by schedule_id, scheduled_for`)
	if err != nil {
		r.find("read the slots: %v", err)
		return
	}
	seen := map[string]bool{}
	minutes := map[string]int64{}
	for _, s := range rows {
		at := time.UnixMilli(s.For).UTC()
		name := fmt.Sprintf("graph/%s/%s", s.Schedule, at.Format("2006-01-02T15:04:05.000Z"))
		if seen[name+s.Trigger] {
			r.find("slot %s is there twice", name)
		}
		seen[name+s.Trigger] = true
		r.ledger.count("slots " + s.Disposition)
		r.world.mu.Lock()
		a := r.world.acts[name]
		effects := 0
		if a != nil {
			effects = a.effects
		}
		r.world.mu.Unlock()
		if s.Disposition == "fired" && (s.Status != "success" || effects != 1) {
			r.find("slot %s of %s is %s and was run %d times", name, s.Trigger, s.Status, effects)
		}
		if s.Disposition != "fired" && effects != 0 {
			r.find("slot %s is %s and was run %d times", name, s.Disposition, effects)
		}
		if s.Trigger != "schedule" {
			continue
		}
		if before, ok := minutes[s.Schedule]; ok && s.For-before != 60_000 {
			r.find("between the slots %s and %s of %s there is none", clock(time.UnixMilli(before)), clock(at), s.Schedule)
		}
		minutes[s.Schedule] = s.Through
	}
}

func (r *run) feedRows(ctx context.Context) (got, want int) {
	rows, err := query[counted](ctx, r.db, `select count(*) from `+r.table("feed"))
	if err != nil {
		return -1, r.world.items(r.feedName())
	}
	return int(rows[0].N), r.world.items(r.feedName())
}

// judgeSources: the tables are what is outside.
func (r *run) judgeSources(ctx context.Context) {
	type item struct{ ID, N int64 }
	rows, err := query[item](ctx, r.db, `select id, count(*) from `+r.table("feed")+` group by 1`)
	if err != nil {
		r.find("read the feed: %v", err)
		return
	}
	for _, row := range rows {
		if row.N != 1 {
			r.find("item %d of the feed is there %d times", row.ID, row.N)
		}
	}
	if want := r.world.items(r.feedName()); len(rows) != want {
		r.find("the feed has %d items, and %d are there", want, len(rows))
	}
	r.ledger.mu.Lock()
	r.ledger.counts["items of feeds"] += len(rows)
	r.ledger.mu.Unlock()
	var last []item
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; pause(ctx, 500*time.Millisecond) {
		if last, err = query[item](ctx, r.db, `select v, count(*) from `+r.table("table")+` group by 1`); err == nil && len(last) == 1 && last[0] == (item{0, tableRows}) {
			return
		}
	}
	r.find("the table of %d rows with the value 0 is %v (%v)", tableRows, last, err)
}

// judgeWords: nobody is needed, and why says what is.
func (r *run) judgeWords(ctx context.Context) {
	for _, n := range r.nodes {
		for _, l := range r.lanes(ctx) {
			if l.Status == "Needs attention" || l.Status == "Stopped" {
				r.find("%s %s: %s %s", l.Kind, l.Name, l.Status, l.Issue)
			}
			if _, err := r.why(ctx, n, l); err != nil {
				r.find("why %s %s at %s: %v", l.Kind, l.Name, n.name, err)
			}
		}
	}
}

// judgeLogs looks for what a process says only when it is wrong.
func (r *run) judgeLogs() {
	for _, n := range r.nodes {
		for line := range strings.Lines(n.logText()) {
			for _, bad := range []string{"panic:", "DATA RACE", "contradicts the rules", "level=ERROR msg=\"a job panicked"} {
				if strings.Contains(line, bad) {
					r.find("%s says: %s", n.name, strings.TrimSpace(line))
				}
			}
		}
	}
}
