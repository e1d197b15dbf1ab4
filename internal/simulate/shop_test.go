package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// shop is what is known of the workflow.
type shop struct {
	w         *world
	id        string
	editions  int
	producing bool
	every     string

	published []string        // asked for, in order; guarded by w.mu, as are the others
	accepted  map[string]bool // that are known to be there
	skipped   map[string]bool // that somebody gave up, or tried to
	paused    map[string]bool // the runs that had begun when it was paused; nil: it may go on
	wanted    time.Time       // when a run of the producer was asked for last, and that is known
}

func newShop(w *world, r *rand.Rand) *shop {
	s := &shop{w: w, accepted: map[string]bool{}, skipped: map[string]bool{}, producing: r.IntN(2) == 0, every: "20s"}
	w.desk.ignoresKeys = r.IntN(3) == 0
	return s
}

// open deploys the first version.
func (s *shop) open(r *rand.Rand) {
	s.deploy(0, edition{Batch: 1, Method: pick(r, methods)})
	s.id = s.w.rows(`select id||'' from workflows`)[0][0]
}

var methods = []string{"order", "order", "sign", "mail"}

func (s *shop) deploy(at int, e edition) {
	s.editions++
	e.N = s.editions
	if s.producing { // one that a run waits for must not vanish
		e.Every = s.every
	}
	if s.w.plan.parts {
		e.Parts = 2
	}
	text, _ := json.Marshal(e)
	s.w.touch()
	defer s.w.touch()
	err := s.w.try(at, func(l *life) error {
		_, err := l.workflows.Apply(l.ctx, workflow.Deploy{Filename: "shop.ts", Script: string(text), By: "tester"})
		return err
	})
	s.w.note("deploy %s: %v", text, err)
	s.w.refused("deploy", err)
}

// publish is a client who publishes until it is told that the event is there.
func (s *shop) publish(r *rand.Rand) {
	for i := range 1 + r.IntN(3) {
		s.w.mu.Lock()
		id := fmt.Sprint("e", len(s.published)+1)
		s.published = append(s.published, id)
		s.w.mu.Unlock()
		at := r.IntN(len(s.w.nodes))
		s.w.acts.Go(func() {
			pass(time.Duration(i) * 5077) // no two at the same instant
			err := s.w.try(at, func(l *life) error {
				return l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error { return l.publish(ctx, tx, id) })
			})
			s.w.mu.Lock()
			s.accepted[id] = err == nil
			s.w.mu.Unlock()
			s.w.note("event %s: %v", id, err)
			s.w.refused("publish", err)
		})
	}
}

// act is one step of people, or of the desk.
func (s *shop) act(r *rand.Rand, what string) {
	d := s.w.desk
	switch what {
	case "publish":
		s.publish(r)
	case "trouble":
		d.mu.Lock()
		for range 1 + r.IntN(2) {
			d.calls = append(d.calls, pick(r, outcomes))
		}
		takes := pick(r, []time.Duration{0, 0, 0, time.Second, 4 * time.Second, 8 * time.Second, 40 * time.Second, 90 * time.Second})
		if d.ignoresKeys { // what takes longer than a minute then is made twice, and nobody can help it
			takes = min(takes, 40*time.Second)
		}
		d.takes = append(d.takes, takes)
		d.blind += pick(r, []int{0, 0, 1, 2, 7})
		s.w.note("the desk: %v, takes %v, blind %d", d.calls, d.takes, d.blind)
		d.mu.Unlock()
		s.publish(r)
	case "publish again":
		s.repeat(r)
	case "bad read":
		d.mu.Lock()
		d.reads = append(d.reads, pick(r, []pawl.Class{pawl.ClassTransient, pawl.ClassTransient, pawl.ClassLogic, pawl.ClassAuth}))
		d.mu.Unlock()
		s.publish(r)
	case "say":
		s.say(r)
	case "skip":
		s.skip(r)
	case "pause":
		var begun map[string]bool
		err := s.w.do(r, "pause", func(ctx context.Context, l *life, tx *store.Tx) (err error) {
			if _, err = l.workflows.Pause(ctx, tx, "shop", "tester", lane.PauseTerms{}); err == nil {
				begun, err = firstAttempts(ctx, tx, pawl.KindWorkflow)
			}
			return err
		})
		if err == nil {
			s.paused = begun
		}
	case "resume":
		s.paused = nil
		_ = s.w.do(r, "resume", func(ctx context.Context, l *life, tx *store.Tx) error {
			_, err := l.workflows.Resume(ctx, tx, "shop", "tester")
			return err
		})
	case "run now":
		at := time.Now()
		if s.w.do(r, "run now", func(ctx context.Context, l *life, tx *store.Tx) error {
			return l.workflows.RunNow(ctx, tx, "shop", "tester")
		}) == nil {
			s.wanted = at
		}
	case "deploy":
		s.deploy(r.IntN(len(s.w.nodes)), edition{Broken: pick(r, broken), Batch: 1 + r.IntN(2), Method: pick(r, methods), Fickle: r.IntN(3) == 0, Wakes: r.IntN(3) == 0})
	case "revoke rule":
		_ = s.w.do(r, "revoke", func(ctx context.Context, _ *life, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update approval_rules set revoked_by = 'tester', revoked_at = $1 where revoked_at is null`, store.Millis(tx.Now))
			return err
		})
	}
}

// repeat is a client who publishes once more what it published before, and does not
// know it.
func (s *shop) repeat(r *rand.Rand) {
	s.w.mu.Lock()
	list := slices.Clone(s.published)
	s.w.mu.Unlock()
	if len(list) == 0 {
		return
	}
	id := pick(r, list)
	err := s.w.do(r, "publish again "+id, func(ctx context.Context, l *life, tx *store.Tx) error {
		return l.publish(ctx, tx, id)
	})
	if err == nil {
		s.w.mu.Lock()
		s.accepted[id] = true
		s.w.mu.Unlock()
	}
}

// publish is one event of a client.
func (l *life) publish(ctx context.Context, tx *store.Tx, id string) error {
	_, _, err := l.workflows.PublishExternal(ctx, tx, "shop", workflow.ExternalEvent{
		Topic: "in", MessageID: id, Payload: payloadOf(id),
		Input: &workflow.OutsideInput{Source: "test", Type: "thing", ID: id, Title: "Thing " + id},
	}, "tester")
	return err
}

var (
	broken   = []string{"", "", "", "consumers.order.prepare", "consumers.order.mutate", "consumers.order.next"}
	outcomes = []string{
		"", lostAnswer, lostRequest, lostAnswer, lostRequest, falseRefusal, string(pawl.ClassTransient), string(pawl.ClassTransient), string(pawl.ClassLogic),
		string(pawl.ClassAuth), string(pawl.ClassPermission), string(pawl.ClassPrecondition), string(pawl.ClassInternal),
	}
)

func (s *shop) skip(r *rand.Rand) {
	s.w.mu.Lock()
	list := slices.Clone(s.published)
	s.w.mu.Unlock()
	if len(list) == 0 {
		return
	}
	id := pick(r, list)
	s.w.mu.Lock()
	s.skipped[id] = true
	s.w.mu.Unlock()
	_ = s.w.do(r, "skip "+id, func(ctx context.Context, l *life, tx *store.Tx) error {
		_, err := l.workflows.SkipInput(ctx, tx, script.InputID(s.id, "test", "thing", id), "tester")
		return err
	})
}

// latest is the newest run of a lane.
type latest struct {
	id     string
	status pawl.Status
}

// newest are the newest runs: of the workflow, and of each of its partitions.
func (s *shop) newest() (list []latest) {
	seen := map[string]bool{}
	for _, row := range s.w.rows(`select lane||'', id||'', status||'' from runs where kind = 'workflow' order by id desc`) {
		if !seen[row[0]] {
			seen[row[0]] = true
			list = append(list, latest{row[1], pawl.Status(row[2])})
		}
	}
	return list
}

// unknown is the call of a run of which only people can know: its key and what it
// ordered.
func (s *shop) unknown(runID string) (key string, ids []string) {
	for _, row := range s.w.rows(`select idempotency_key||'', arguments||'' from mutations where run_id = $1 and state = 'indeterminate'`, runID) {
		return row[0], idsIn(json.RawMessage(row[1]))
	}
	return "", nil
}

// say is a person who answers about one of the newest runs, truly or not.
func (s *shop) say(r *rand.Rand) {
	list := s.newest()
	if len(list) == 0 {
		return
	}
	about := pick(r, list)
	id := about.id
	switch about.status {
	case pawl.StatusPausedApproval:
		word := pick(r, []string{"approve", "approve", "approve", "always", "reject", "resume"})
		_ = s.w.do(r, word, func(ctx context.Context, l *life, tx *store.Tx) error {
			switch word {
			case "reject":
				if _, err := l.workflows.Reject(ctx, tx, id, "tester"); err != nil {
					return err
				}
				return s.checkRejected(ctx, tx, id)
			case "resume":
				return l.workflows.ResumeRun(ctx, tx, id, "tester")
			}
			return l.workflows.Approve(ctx, tx, id, "", word == "always", "tester")
		})
	case pawl.StatusPausedReconciliation:
		s.resolve(r, id, pick(r, []workflow.Outcome{workflow.Happened, workflow.DidNotHappen, workflow.SkipIt, workflow.TryAgain}))
	default:
		_ = s.w.do(r, "resume the run", func(ctx context.Context, l *life, tx *store.Tx) error {
			return l.workflows.ResumeRun(ctx, tx, id, "tester")
		})
	}
}

func (s *shop) resolve(r *rand.Rand, runID string, o workflow.Outcome) {
	key, ids := s.unknown(runID)
	if key != "" {
		happened := s.w.desk.happened(key)
		d := s.w.desk
		d.mu.Lock()
		switch {
		case o == workflow.DidNotHappen && happened:
			d.deny(key, ids)
		case o == workflow.Happened && !happened:
			d.misled[key] = true
		}
		d.mu.Unlock()
		s.w.mu.Lock()
		for _, id := range ids {
			if o == workflow.SkipIt {
				s.skipped[id] = true
			}
		}
		s.w.mu.Unlock()
	}
	_ = s.w.do(r, string(o), func(ctx context.Context, l *life, tx *store.Tx) error {
		return l.workflows.Resolve(ctx, tx, runID, o, json.RawMessage(`"seen"`), "tester")
	})
}

// heal is one round of people who mend things; it reports whether there is
// nothing left to do.
func (s *shop) heal(r *rand.Rand, round int) bool {
	if round == 0 {
		s.w.desk.heal()
		s.every, s.paused = "8760h", nil
		s.deploy(0, edition{Batch: 1, Method: "order"})
		_ = s.w.do(r, "resume", func(ctx context.Context, l *life, tx *store.Tx) error {
			_, err := l.workflows.Resume(ctx, tx, "shop", "tester")
			return err
		})
	}
	if s.quiet() {
		return true
	}
	answered := false
	for _, about := range s.newest() {
		answered = s.answer(r, about.id, about.status) || answered
	}
	if !answered {
		_ = s.w.do(r, "resume", func(ctx context.Context, l *life, tx *store.Tx) error {
			_, err := l.workflows.Resume(ctx, tx, "shop", "tester")
			return err
		})
	}
	return false
}

// answer is a person who says of a run what is true, if it waits for that.
func (s *shop) answer(r *rand.Rand, id string, status pawl.Status) bool {
	asked := len(s.w.rows(`select id||'' from approvals where run_id = $1 and state = 'pending'`, id)) > 0
	switch key, _ := s.unknown(id); {
	case key != "" && s.w.desk.happened(key):
		s.resolve(r, id, workflow.Happened)
	case key != "":
		s.resolve(r, id, workflow.DidNotHappen)
	case status == pawl.StatusPausedApproval && asked:
		_ = s.w.do(r, "approve", func(ctx context.Context, l *life, tx *store.Tx) error {
			return l.workflows.Approve(ctx, tx, id, "", false, "tester")
		})
	default:
		return false
	}
	return true
}

// quiet reports whether the workflow has nothing to do.
func (s *shop) quiet() bool {
	open := s.w.rows(`select id||'' from events where status in ('pending', 'reserved') limit 1`)
	due := s.w.rows(`select id||'' from producer_schedules where requested_at is not null or next_run_at <= $1`, time.Now().Add(time.Minute).UnixMilli())
	under := slices.ContainsFunc(s.newest(), func(l latest) bool { return !run.Terminal(l.status) })
	return len(open) == 0 && len(due) == 0 && !under
}

// sameAct reports whether two calls are for the same events. Scripts do not always send
// the same, which is a repetition nevertheless.
func sameAct(a, b string) bool {
	of := func(arguments string) []string {
		return slices.DeleteFunc(idsIn(json.RawMessage(arguments)), func(id string) bool { return strings.HasPrefix(id, "more-") })
	}
	return slices.Equal(of(a), of(b))
}

// checkRejected holds that nothing goes on of what a person rejected: the workflow is
// paused, or the partition waits.
func (s *shop) checkRejected(ctx context.Context, tx *store.Tx, runID string) error {
	var stands int
	err := tx.QueryRow(ctx, `select (select count(*) from workflows where desired <> 'active') + (select count(*) from partitions where rejected_run = $1)`, runID).Scan(&stands)
	if err == nil && stands == 0 {
		s.w.fail("run %s was rejected, and the workflow goes on", runID)
	}
	return err
}

// checkWoken holds that a consumer that wants to look again does so, when nothing else is
// under way.
func (s *shop) checkWoken() {
	late := time.Now().Add(-s.w.bound()).UnixMilli()
	for _, h := range s.w.rows(`select h.handler||'', h.wake_at||'' from handler_state h join workflows w on w.id = h.workflow_id join lanes l on l.kind = 'workflow' and l.lane = w.lane
		where h.wake_at <= $1 and w.desired = 'active' and l.state = 'Idle' and l.cause is null and not exists (select 1 from runs r where r.kind = 'workflow' and r.status = 'active')`, late) {
		if list := s.newest(); len(list) > 0 && list[0].status == pawl.StatusCommitted {
			s.w.fail("consumer %s wanted to look again %v ago, and did not", h[0], time.Since(time.UnixMilli(atoi(h[1]))))
		}
	}
}

// checkWanted holds that a run which was asked for began after that.
func (s *shop) checkWanted() {
	if s.wanted.IsZero() || !s.producing || s.w.pruned || s.w.skew > 0 {
		return
	}
	if len(s.w.rows(`select id||'' from runs where kind = 'workflow' and handler = 'poll' and created_at >= $1 limit 1`, s.wanted.UnixMilli())) == 0 {
		s.w.fail("a run of the producer was asked for, and none began since")
	}
}

// check holds what must be true in the end.
func (s *shop) check() {
	w := s.w
	s.checkWanted()
	w.hasty(pawl.KindWorkflow, "refused", 10*time.Second)
	counting := map[string][]string{} // calls that count, by event
	last := map[string][]string{}
	for _, m := range w.rows(`select idempotency_key||'', state||'', arguments||'', id||'' from mutations order by id`) {
		key, state := m[0], m[1]
		if was := last[key]; was != nil && (was[1] != "failed" || !sameAct(was[2], m[2])) {
			w.fail("the call %s has the key of %s, which is %s", m[2], was[2], was[1])
		}
		last[key] = m
		if state == "applied" || state == "skipped" {
			for _, id := range idsIn(json.RawMessage(m[2])) {
				counting[id] = append(counting[id], state)
			}
		}
	}
	for key, m := range last {
		happened := w.desk.happened(key)
		if !slices.Contains([]string{"applied", "failed", "skipped"}, m[1]) || (m[1] == "applied") != happened && m[1] != "skipped" && !w.desk.misled[key] {
			w.fail("the call %s is %s, and that it happened is %v", m[2], m[1], happened)
		}
	}
	for key, o := range w.desk.orders {
		if last[key] == nil && !w.pruned {
			w.fail("the order of %v is not in the ledger", o.ids)
		}
	}
	out := map[string]string{}
	in := map[string]string{}
	for _, e := range w.rows(`select topic||'', message_id||'', status||'' from events`) {
		if e[0] == "in" {
			in[e[1]] = e[2]
		} else {
			out[e[1]] = e[2]
		}
	}
	for _, id := range s.published {
		_, there := in[id]
		switch {
		case there || !s.accepted[id]:
		case !w.pruned:
			w.fail("event %s was accepted and is gone", id)
		case w.desk.effects(id) == 0 && !s.skipped[id] && !s.lied(id):
			w.fail("event %s was removed, and it was never ordered", id)
		}
	}
	for id, status := range in {
		if w.pruned && len(counting[id]) == 0 && status == "consumed" && w.desk.effects(id) > 0 {
			continue // its call was removed before it
		}
		s.checkEvent(id, status, counting[id])
		if w.pruned {
			continue
		}
		if _, told := out[toldOf(id)]; told != (len(counting[id]) == 1) {
			w.fail("event %s has the calls %v, and that next told of it is %v", id, counting[id], told)
		}
	}
	for id, status := range out {
		if status != "consumed" && !(status == "skipped" && len(s.skipped) > 0) {
			w.fail("event %s is %s", id, status)
		}
	}
	s.checkProducer(in)
	s.checkParts()
	s.checkChains()
	for _, o := range w.rows(`select e.message_id||'' from events e left join runs r on r.id = e.reserved_by where e.status = 'reserved' and (r.id is null or r.ended_at is not null)`) {
		w.fail("event %s is held by nobody", o[0])
	}
	if l := w.alive()[0]; true {
		switch d, err := l.workflows.Describe(context.Background(), "shop"); {
		case err != nil:
			w.fail("describe: %v", err)
		case d.State != run.Idle && d.State != run.Running || d.Pending != 0:
			w.fail("people see %s (%s) with %d pending", d.State, d.Sentence, d.Pending)
		}
	}
}

// checkEvent holds how the story of one event may end.
func (s *shop) checkEvent(id, status string, done []string) {
	n := s.w.desk.effects(id)
	skipped := s.skipped[id]
	switch {
	case status != "consumed" && status != "skipped":
		s.w.fail("event %s is %s for ever", id, status)
	case status == "skipped" && !skipped:
		s.w.fail("event %s is skipped, and nobody skipped it", id)
	case len(done) == 1 && done[0] == "skipped" && status != "skipped":
		s.w.fail("the call of event %s was skipped, and the event is %s", id, status)
	case len(done) > 1:
		s.w.fail("event %s has several calls that count: %v", id, done)
	case len(done) == 0 && (!skipped || status == "consumed"):
		s.w.fail("event %s is %s and no call of it counts", id, status)
	case len(done) == 1 && done[0] == "applied" && n == 0 && !s.lied(id):
		s.w.fail("event %s counts as ordered, and was not", id)
	}
}

// lied reports whether somebody said of an order of the event what is not true.
func (s *shop) lied(id string) bool {
	for _, m := range s.w.rows(`select idempotency_key||'', arguments||'' from mutations`) {
		if s.w.desk.misled[m[0]] && strings.Contains(m[1], fmt.Sprintf("%q", id)) {
			return true
		}
	}
	return false
}

// checkProducer holds that the state of the producer and what it published were
// committed together.
func (s *shop) checkProducer(in map[string]string) {
	polled := 0
	for id := range in {
		if strings.HasPrefix(id, "p") {
			polled++
		}
	}
	for _, row := range s.w.rows(`select state||'' from handler_state where handler = 'poll'`) {
		var state struct{ N int }
		_ = json.Unmarshal([]byte(row[0]), &state)
		if state.N != polled && !s.w.pruned || state.N < polled {
			s.w.fail("the producer counted to %d and published %d", state.N, polled)
		}
	}
}

// checkChains holds that every attempt follows one that ended, as the next one.
func (s *shop) checkChains() {
	followed := map[string]string{}
	attempt := map[string]string{}
	for _, r := range s.w.rows(`select id||'', coalesce(retry_of, '')||'', attempt||'', status||'' from runs where kind = 'workflow' order by created_at, id`) {
		attempt[r[0]] = r[2]
		if r[3] == "active" {
			s.w.fail("run %s is active", r[0])
		}
		if r[1] == "" {
			continue
		}
		if followed[r[1]] != "" {
			s.w.fail("run %s is followed by %s and %s", r[1], followed[r[1]], r[0])
		}
		followed[r[1]] = r[0]
		if fmt.Sprint(attempt[r[1]]) == r[2] {
			s.w.fail("run %s is attempt %s as the one before it", r[0], r[2])
		}
	}
}
