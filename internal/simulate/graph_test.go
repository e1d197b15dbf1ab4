package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/store"
)

// graph is what schedules run, far away: it goes on when nobody watches.
type graph struct {
	w *world

	mu    sync.Mutex
	runs  map[string]*graphRun // by key and attempt; guarded by mu, as are the others
	fates []string             // of the next runs
	takes []time.Duration
}

type graphRun struct {
	key      string // of the slot
	begun    int
	ends     time.Time
	fate     string
	resumed  bool
	canceled bool
}

func newGraph(w *world) *graph { return &graph{w: w, runs: map[string]*graphRun{}} }

// graphsOf is the graphs as a process reaches them.
type graphsOf struct {
	g *graph
	l *life
}

func (o graphsOf) Lookup(string) (runner.Executor, string, error) { return o, "poet", nil }

func (o graphsOf) Cancel(_ context.Context, r runner.Run) error {
	o.l.stands()
	if o.l.isDead() {
		return errDead
	}
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	if run := o.g.runs[nameOf(r)]; run != nil {
		run.canceled = true
	}
	return nil
}

func nameOf(r runner.Run) string { return fmt.Sprintf("%s/%d", r.Key, r.Attempt) }

func (o graphsOf) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	name := nameOf(r)
	remote := json.RawMessage(fmt.Sprintf("%q", name))
	mine := string(r.Remote) == string(remote)
	if !mine {
		if err := emit(runner.Event{Kind: runner.KindRemote, Remote: remote}); err != nil {
			return runner.Result{}, err
		}
	}
	o.l.stands()
	if o.l.isDead() {
		return runner.Result{}, errDead
	}
	run := o.begin(name, r, mine)
	o.g.w.calendar.passedOn(r)
	began := time.Now()
	for {
		o.g.mu.Lock()
		left, fate, canceled := time.Until(run.ends), run.fate, run.canceled
		if fate == "ask" && r.Resume != nil {
			run.resumed = true
		}
		asks := fate == "ask" && !run.resumed
		o.g.mu.Unlock()
		switch {
		case o.l.isDead():
			return runner.Result{}, errDead
		case canceled:
			return runner.Final(runner.CodeAborted, "somebody stopped it"), nil
		case left > 0:
			select {
			case <-ctx.Done():
				return runner.Result{}, context.Cause(ctx)
			case <-time.After(min(left, time.Second)):
			}
			o.l.stands()
		case asks:
			o.g.w.calendar.asks(r, began)
			return runner.Result{Interrupt: json.RawMessage(`"may I?"`)}, nil
		case fate == "fail":
			return runner.Failure(runner.CodeInternal, "it fails"), nil
		case fate == "refuse":
			return runner.Final(runner.CodeInvalidRequest, "it refuses"), nil
		default:
			return runner.Result{OK: true, Output: json.RawMessage(`{"poem":"leaf"}`)}, nil
		}
	}
}

// begin starts a run, or finds the one that was started.
func (o graphsOf) begin(name string, r runner.Run, mine bool) *graphRun {
	g := o.g
	o.l.mu.Lock()
	excused := o.l.faulted.After(time.Now().Add(-2 * lease))
	o.l.mu.Unlock()
	if !mine && r.Attempt == 1 && g.w.calendar != nil {
		g.w.calendar.belongs(r.Key)
		g.w.calendar.granted(r.Key)
		g.w.starts(o.l, "the slot "+name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	run := g.runs[name]
	if run == nil && g.w.calendar != nil {
		g.beside(name, r.Key)
		g.atOnce(r)
	}
	if run == nil {
		run = &graphRun{key: r.Key, ends: time.Now().Add(time.Second)}
		if len(g.fates) > 0 {
			run.fate, g.fates = g.fates[0], g.fates[1:]
		}
		if len(g.takes) > 0 {
			run.ends, g.takes = time.Now().Add(g.takes[0]), g.takes[1:]
		}
		g.runs[name] = run
		run.begun++
		g.w.note("node %d: the graph begins %s", o.l.n.index, name)
	} else if !mine && !excused {
		g.w.fail("%s is begun a second time by somebody who does not know of the first", name)
	}
	return run
}

// beside holds that two slots of a schedule run at once only where that is allowed.
// What was stopped, or whose node was hurt, may go on outside.
func (g *graph) beside(name, key string) {
	g.w.mu.Lock()
	judged := !g.w.wounded && g.w.calendar.policy[scheduleOf(key)] != pawl.PolicyAllow
	g.w.mu.Unlock()
	for other, run := range g.runs {
		if judged && run.key != key && scheduleOf(run.key) == scheduleOf(key) && !run.canceled && run.ends.After(time.Now()) {
			g.w.fail("%s begins while %s runs", name, other)
		}
	}
}

// atOnce holds that another attempt waits after the one that failed. g.mu is held.
func (g *graph) atOnce(r runner.Run) {
	before := g.runs[fmt.Sprintf("%s/%d", r.Key, r.Attempt-1)]
	g.w.mu.Lock()
	exact := g.w.skew == 0
	g.w.mu.Unlock()
	if before != nil && before.fate == "fail" && exact && time.Since(before.ends) < 950*time.Millisecond {
		g.w.fail("attempt %d of %s begins %v after the one before it failed", r.Attempt, r.Key, time.Since(before.ends))
	}
}

// word is what a person answered.
type word struct {
	text  string
	at    time.Time
	known bool // that it was taken
}

// passedOn holds that a graph is told what a person answered.
func (c *calendar) passedOn(r runner.Run) {
	if r.Resume == nil {
		return
	}
	c.w.mu.Lock()
	said := slices.ContainsFunc(c.words[r.Key], func(a word) bool { return a.text == string(r.Resume) })
	c.w.mu.Unlock()
	if !said {
		c.w.fail("%s goes on with the answer %s, which nobody gave", r.Key, r.Resume)
	}
}

// asks notes that a graph asks a person, and holds that one who answered is not asked
// the same once more.
func (c *calendar) asks(r runner.Run, began time.Time) {
	c.w.mu.Lock()
	again := slices.ContainsFunc(c.words[r.Key], func(a word) bool { return a.known && a.at.Before(began) })
	c.w.mu.Unlock()
	if again && r.Resume == nil {
		c.w.fail("%s asks once more what was answered", r.Key)
	}
}

// scheduleOf is the schedule of a slot.
func scheduleOf(key string) string {
	id, _, _ := strings.Cut(key, ":")
	return id
}

// granted holds that nothing starts under a grant that was taken back.
func (c *calendar) granted(key string) {
	for _, row := range c.w.rows(`select g.id||'' from schedules s join execution_grants g on g.id = s.execution_grant_id where s.id = $1 and g.revoked_at is not null`, scheduleOf(key)) {
		c.w.mu.Lock()
		since := time.Since(c.revoked)
		late := !c.revoked.IsZero() && !c.w.wounded && since > 2*time.Second
		c.w.mu.Unlock()
		if late {
			c.w.fail("%s starts %v after its grant %s was revoked", key, since, row[0])
		}
	}
}

// calendar is what is known of the schedule.
type calendar struct {
	w       *world
	policy  map[string]pawl.ConcurrencyPolicy // by schedule; guarded by w.mu
	revoked time.Time                         // since when all grants are; zero: not all are. Guarded by w.mu
	step    time.Duration                     // between its instants, as it was made
	missed  string                            // what becomes of slots that were missed; empty: nothing
	night   [2]time.Time                      // when nobody was there for minutes
	owner   string
	id      string
	made    time.Time
	gone    map[string]time.Time // schedules that were deleted, and when; guarded by w.mu
	cancels bool                 // somebody cancelled runs, or tried to
	edited  bool                 // its instants are not those of every minute
	healed  time.Time
	words   map[string][]word // answers, by slot; guarded by w.mu
}

func openCalendar(w *world, r *rand.Rand) {
	w.calendar = &calendar{w: w, owner: "ada", gone: map[string]time.Time{}, policy: map[string]pawl.ConcurrencyPolicy{}, words: map[string][]word{}} // before it has what runs
	w.calendar.missed = pick(r, []string{"", "skip", "last", "last", "all"})
	w.calendar.step = pick(r, []time.Duration{time.Minute, time.Minute, time.Minute, 2 * time.Minute, 3 * time.Minute})
	w.calendar.create(r)
}

func (c *calendar) create(r *rand.Rand) {
	w := c.w
	policy := pick(r, []pawl.ConcurrencyPolicy{pawl.PolicyQueue, pawl.PolicyForbid, pawl.PolicyAllow, pawl.PolicyReplace})
	err := w.try(0, func(l *life) error {
		return l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `insert into users (id, name, role, created_at) values ($1, $1, 'operator', 1) on conflict do nothing`, c.owner); err != nil {
				return err
			}
			request := client.ScheduleRequest{
				Name: "s", GraphID: "x:poet", Cron: client.Cron(map[time.Duration]string{time.Minute: "* * * * *", 2 * time.Minute: "*/2 * * * *", 3 * time.Minute: "*/3 * * * *"}[c.step]), Input: json.RawMessage(`{"n":1}`), ConcurrencyPolicy: policy,
			}
			if c.missed != "" {
				request.Missed = &client.Missed{Policy: c.missed}
			}
			sch, err := l.schedules.Create(ctx, tx, c.owner, request, "tester")
			c.id, c.made = sch.ID, tx.Now
			w.mu.Lock()
			c.policy[sch.ID] = policy
			w.mu.Unlock()
			return err
		})
	})
	w.note("a schedule with policy %s: %v", policy, err)
	w.refused("create schedule", err)
}

func (c *calendar) act(r *rand.Rand, what string) {
	g := c.w.graph
	switch what {
	case "graph":
		g.mu.Lock()
		for range 1 + r.IntN(2) {
			g.fates = append(g.fates, pick(r, []string{"", "ask", "fail", "fail", "refuse"}))
			g.takes = append(g.takes, pick(r, []time.Duration{0, time.Second, 9 * time.Second, 35 * time.Second, 80 * time.Second}))
		}
		g.mu.Unlock()
		c.fire(r)
	case "fire":
		c.fire(r)
	case "answer":
		c.answer(r, r.IntN(4) > 0)
	case "edit schedule":
		c.edited = true
		cron := pick(r, []client.Cron{"* * * * *", "*/2 * * * *"})
		c.update(r, client.SchedulePatch{Cron: &cron})
	case "switch schedule":
		c.edited = true
		on := r.IntN(2) == 0
		c.update(r, client.SchedulePatch{Enabled: &on})
	case "revoke grant":
		revoked := "null"
		if r.IntN(2) == 0 {
			revoked = "1"
		}
		err := c.w.do(r, "grant revoked at "+revoked, func(ctx context.Context, _ *life, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update execution_grants set revoked_at = `+revoked)
			return err
		})
		c.w.mu.Lock()
		c.revoked = time.Time{}
		if err == nil && revoked != "null" {
			c.revoked = time.Now()
		}
		c.w.mu.Unlock()
	case "night":
		c.sleep(r)
	case "delete schedule":
		c.delete(r)
	case "cancel run":
		c.cancels = true
		c.each(func(id string) {
			_ = c.w.do(r, "cancel", func(ctx context.Context, l *life, tx *store.Tx) error {
				run, err := runOf(ctx, tx, id)
				if err == nil {
					_, err = l.schedules.CancelRun(ctx, tx, run, "tester")
				}
				return err
			})
		})
	}
}

func (c *calendar) fire(r *rand.Rand) {
	_ = c.w.do(r, "fire", func(ctx context.Context, l *life, tx *store.Tx) error {
		_, err := l.schedules.RunNow(ctx, tx, c.owner, c.id, "tester")
		return err
	})
}

func (c *calendar) update(r *rand.Rand, patch client.SchedulePatch) {
	_ = c.w.do(r, "edit schedule", func(ctx context.Context, l *life, tx *store.Tx) error {
		_, err := l.schedules.Update(ctx, tx, c.owner, c.id, patch, "tester")
		return err
	})
}

// each does something about every run that is not over.
func (c *calendar) each(do func(id string)) {
	for _, row := range c.w.rows(`select id||'' from runs where kind = 'schedule' and (status = 'active' or status like 'paused%')`) {
		do(row[0])
	}
}

func (c *calendar) answer(r *rand.Rand, yes bool) {
	c.each(func(id string) {
		key, text := "", fmt.Sprintf("%d", r.IntN(1_000_000))
		err := c.w.do(r, "answer", func(ctx context.Context, l *life, tx *store.Tx) error {
			run, err := runOf(ctx, tx, id)
			switch {
			case err != nil || run.Status != pawl.StatusPausedApproval:
				return err
			case yes:
				key = pawl.SlotKey(scheduleOf(run.Lane), run.ScheduledFor)
				c.says(key, word{text: text})
				return l.schedules.Approve(ctx, tx, run, json.RawMessage(text), "tester")
			}
			return l.schedules.Reject(ctx, tx, run, "tester")
		})
		if err == nil && key != "" {
			c.says(key, word{text, time.Now(), true})
		}
	})
}

// says notes an answer. Each question takes one.
func (c *calendar) says(key string, a word) {
	c.w.mu.Lock()
	twice := a.known && slices.ContainsFunc(c.words[key], func(b word) bool { return b.known })
	c.words[key] = append(c.words[key], a)
	c.w.mu.Unlock()
	if twice {
		c.w.fail("two answers to the question of %s were taken", key)
	}
}

// checkReplaced holds that a slot which replaces others does not wait for them.
func (c *calendar) checkReplaced() {
	if !c.night[0].IsZero() { // what was missed runs one after the other
		return
	}
	late := time.Now().Add(-c.w.bound() - 5*time.Second).UnixMilli()
	for _, s := range c.w.rows(`select r.scheduled_for||'' from schedule_runs r join schedules s on s.id = r.schedule_id
		where s.concurrency_policy = 'Replace' and s.enabled = 1 and s.deleted_at is null and r.status = 'pending' and r.scheduled_for <= $1 and r.trigger = 'schedule'`, late) {
		c.w.fail("the slot of %s is to replace the others, and waits", time.UnixMilli(atoi(s[0])).UTC().Format(time.TimeOnly))
	}
}

func (c *calendar) heal(r *rand.Rand, round int) bool {
	if round == 0 {
		g := c.w.graph
		g.mu.Lock()
		g.fates, g.takes = nil, nil
		g.mu.Unlock()
		c.healed = time.Now()
		_ = c.w.do(r, "grant", func(ctx context.Context, _ *life, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update execution_grants set revoked_at = null`)
			return err
		})
		c.w.mu.Lock()
		c.revoked = time.Time{}
		c.w.mu.Unlock()
		on, cron := true, client.Cron("* * * * *")
		c.update(r, client.SchedulePatch{Enabled: &on, Cron: &cron})
	}
	c.answer(r, true)
	open := c.w.rows(`select id||'' from schedule_runs where disposition is null and scheduled_for <= $1`, time.Now().UnixMilli())
	fired := c.w.rows(`select id||'' from schedule_runs where disposition = 'fired' and scheduled_for > $1 limit 1`, c.healed.UnixMilli())
	return len(open) == 0 && len(fired) > 0
}

// check holds that every instant has one slot, that slots ran as often as they
// were tried, and that what was skipped did not run.
func (c *calendar) check() {
	w := c.w
	there := map[int64]bool{}
	begun := map[string]int{}
	for _, run := range w.graph.runs {
		begun[run.key] += run.begun
	}
	for _, s := range w.rows(`select scheduled_for||'', status||'', coalesce(disposition, '')||'', attempt_count||'', schedule_id||'' from schedule_runs`) {
		at := atoi(s[0])
		there[at] = true
		n := begun[pawl.SlotKey(s[4], time.UnixMilli(at).UTC())]
		switch {
		case s[2] == "" && at <= time.Now().UnixMilli():
			w.fail("the slot of %s is %s and has no disposition", time.UnixMilli(at).UTC().Format(time.TimeOnly), s[1])
		case s[1] == "skipped" && n > 0:
			w.fail("a slot was skipped and ran %d times", n)
		case int64(n) > atoi(s[3]):
			w.fail("a slot ran %d times in %s attempts", n, s[3])
		case s[1] == "success" && n == 0:
			w.fail("a slot succeeded and did not run")
		}
	}
	c.checkMissed(begun)
	if !c.edited {
		for at := c.made.Truncate(c.step).Add(c.step); at.Before(c.healed); at = at.Add(c.step) {
			if !there[at.UnixMilli()] && !w.halts && !w.pruned {
				w.fail("the instant %s has no slot", at.UTC().Format(time.TimeOnly))
			}
		}
	}
	for _, row := range w.rows(`select id||'' from runs where kind = 'schedule' and status = 'active'`) {
		w.fail("run %s of a schedule is active", row[0])
	}
	if l := w.alive()[0]; true {
		if n, err := l.schedules.Reconcile(context.Background()); n != 0 || err != nil {
			w.fail("the reconciler had to repair %d (%v)", n, err)
		}
	}
}

// checkPlanned holds that a schedule which is on has a slot that leads on to the next
// one, at any time: it is made with the end of the one before.
func (c *calendar) checkPlanned() {
	for _, row := range c.w.rows(`select s.id||'' from schedules s where s.enabled = 1 and s.ended = 0 and s.deleted_at is null and s.capped_until is null
		and not exists (select 1 from schedule_runs r where r.schedule_id = s.id and r.trigger = 'schedule' and r.completed_at is null)`) {
		c.w.fail("schedule %s is on, and no slot of it is to come", row[0])
	}
}
