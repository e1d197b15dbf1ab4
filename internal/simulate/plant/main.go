// Plant breaks the program in ways that are known, one after the other, and
// tells within how many histories the simulator finds each:
//
//	go run ./internal/simulate/plant [-seeds 10000] [-only WORD]
//
// Nothing is written to the sources: the broken files are overlays.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bug is a text that takes the place of another one in a file.
type bug struct {
	name, file, was, is string
}

// known are the bugs.
func known() []bug {
	return slices.Concat(ofTheQueue(), ofTheRest(), ofPromises(), ofReviewers(), ofOthers(), ofRuns(), ofWorkersAndTimes())
}

// ofTheQueue are those of lanes, leases, kinds and their rows.
func ofTheQueue() []bug {
	return []bug{
		{
			"a fence that always holds", "internal/store/dialect_sqlite.go",
			"	if errors.Is(err, ErrNoRow) {\n		return false, nil\n	}\n	return err == nil, err", "	if errors.Is(err, ErrNoRow) {\n		return true, nil\n	}\n	return err == nil, err",
		},
		{
			"the owner of a job is not told of it", "internal/queue/enqueue.go",
			"	q.hints.due(foreign)\n	q.tellCommitted(jobs, now)\n}\n\n// doubtWaits", "	q.tellCommitted(jobs, now)\n}\n\n// doubtWaits",
		},
		{
			"a transaction whose answer was lost is run again", "internal/store/tx.go",
			"if err == nil || try == maxTries || !db.retryable(err) {", "if err == nil || try == maxTries || !db.retryable(err) && pawl.ErrorCode(err) != pawl.CodeUnavailable {",
		},
		{
			"a node works on when its lease is over", "internal/queue/clock.go",
			"return q.cfg.Lease * 7 / 10", "return q.cfg.Lease * 17 / 10",
		},
		{
			"a node is held for dead too early", "internal/queue/lease.go",
			"now-s.since >= lease {", "now-s.since >= lease/10 {",
		},
		{
			"a job is ended although it changed meanwhile", "internal/store/dialect_sqlite.go",
			"where j.id = d.value->>0 and j.rev = d.value->>1 and (j.kept_at is null or j.kept_at < d.value->>2))", "where j.id = d.value->>0)",
		},
		{
			"a call is repeated under another key", "internal/workflow/mutate.go",
			"row.IdempotencyKey = cmp.Or(kept, row.IdempotencyKey)", "row.IdempotencyKey = cmp.Or(row.IdempotencyKey, kept)",
		},
		{
			"that a call is not there is believed at once", "internal/workflow/ask.go",
			"	if asked.Before(row.AbsentAt) {", "	if false {",
		},
		{
			"nobody looks at the lease before a job begins", "internal/queue/clock.go",
			"func (b *board) mayStart() bool { return !b.shared || b.clock() < b.until }", "func (b *board) mayStart() bool { return true }",
		},
		{
			"a share in one's own name is not taken", "internal/queue/lease.go",
			"if b.owned[s.ID] == nil && s.Node == me {", "if false && b.owned[s.ID] == nil && s.Node == me {",
		},
		{
			"a schedule does not go on after a slot", "internal/schedule/settle.go",
			"	return s.chain(ctx, tx, sch, after, false)", "	if after.Minute()%2 == 0 {\n		return nil\n	}\n	return s.chain(ctx, tx, sch, after, false)",
		},
		{
			"a job in doubt is not looked for", "internal/queue/enqueue.go",
			"	if len(jobs) == 0 {\n		return\n	}\n	for _, wait", "	if true {\n		return\n	}\n	for _, wait",
		},
		{
			"a job that ended before its commit was told is offered once more", "internal/queue/board_work.go",
			"		b.past.note(j.ID, j.Rev)\n", "",
		},
		// What the simulator found, before it was mended.
		{
			"the owner of a bucket is not told to look when another node finds it lost", "internal/queue/board_work.go",
			"	if b.lost != nil {", "	if false {",
		},
		{
			"nobody looks when a successor joins", "internal/queue/hint.go",
			"so.\n		q.sweep()", "so.",
		},
		{
			"the dead are robbed before they are buried", "internal/queue/lease.go",
			"			delete(dead, n.ID)\n			continue", "			continue",
		},
		{
			"a file that is full at the start is never worked on", "internal/queue/lease.go",
			"case !q.db.Shared() && !l.hurry:", "case !q.db.Shared():",
		},
		{
			"what cannot fail any more is remembered as failed", "internal/queue/health.go",
			"	if _, under := h.since[duty]; !left && !under {", "	if false {",
		},
	}
}

// ofTheRest are those of workers of users, halts, retention, expectations and disks.
func ofTheRest() []bug {
	return []bug{
		{
			"a worker whose lease was taken back is believed", "internal/store/job_lease.go",
			"and (job_id, token) in (select v.job, v.sign from `+table+`) returning `+heldColumns", "and job_id in (select v.job from `+table+`) returning `+heldColumns",
		},
		{
			"a lane has more jobs in hand than its task allows", "internal/store/job_served.go",
			"case when j.lane is null then 0 else (select count(*)", "case when true then 0 else (select count(*)",
		},
		{
			"workers are given jobs while everything is halted", "internal/worker/claim.go",
			"taken, halted; err != nil || halted {", "taken, halted; err != nil {",
		},
		{
			"jobs start while everything is halted", "internal/queue/halt.go",
			"return b.halt.Active() && b.waits[task] }", "return false }",
		},
		{
			"nobody looks when a halt is lifted", "internal/queue/halt.go",
			"		for id := range b.owned {\n			b.reread(id)\n		}", "",
		},
		{
			"ends that could not be written are forgotten", "internal/queue/finish.go",
			"	case !store.Refused(err):\n		return batch, err\n", "	case !store.Refused(err):\n		return nil, nil\n",
		},
		{
			"an event that retention removed is taken once more", "internal/store/eventstore/event_old.go",
			"if m, ok := of[t]; ok {", "if m, ok := of[t]; ok && m == \"\" {",
		},
		{
			"what was found of a lane is not kept", "internal/expect/service.go",
			"		if err := runstore.In(tx).SetExpected(ctx, now); err != nil {\n			return err\n		}\n", "",
		},
		{
			"a lane that is silent is not judged", "internal/expect/service.go",
			"				case now != l:\n", "				case now != l && len(terms.ParseStanding(now.Expected).Unmet()) == 0:\n",
		},
		{
			"a place that is given back is given to nobody", "internal/workflow/partition_place.go",
			"		return e.handOut(ctx, tx, v.workflow, v.config, v.part.Handler, \"\")\n	})\n	if err != nil {\n		return err\n	}", "		return nil\n	})\n	if err != nil {\n		return err\n	}",
		},
		{
			"more partitions are at work than may be", "internal/workflow/partition_place.go",
			"HandOut(ctx, w.ID, handler, c.places())", "HandOut(ctx, w.ID, handler, c.places()+1)",
		},
		{
			"a schedule goes on from the clock", "internal/schedule/settle.go",
			"	return s.chain(ctx, tx, sch, after, false)", "	return s.chain(ctx, tx, sch, tx.Now.Add(0*after.Sub(tx.Now)), false)",
		},
	}
}

// ofPromises are those that somebody would notice: what is asked for is not done, is
// done too early, twice, or although nobody allows it.
func ofPromises() []bug {
	return []bug{
		{
			"a retry is counted twice", "internal/store/job_finish.go",
			"Millis(f.RunAt), j.Attempt+1, NullText(f.Error))", "Millis(f.RunAt), j.Attempt+2, NullText(f.Error))",
		},
		{
			"jobs begin before their time", "internal/queue/board.go",
			"	if e.job.RunAt.After(now) {\n", "	if e.job.RunAt.After(now.Add(900 * time.Millisecond)) {\n",
		},
		{
			"a job that failed begins again at once", "internal/queue/task.go",
			"f.RunAt = now.Add(t.backoff(j.ID, j.Attempt+1))", "f.RunAt = now",
		},
		{
			"a job that was cancelled runs", "internal/queue/hint.go",
			"	if e.place == inTimers || e.place == inLane || e.place == inReady {\n		b.drop(e)\n	}\n", "	if e.place == inReady {\n		b.drop(e)\n	}\n",
		},
		{
			"a newer job under a key is lost", "internal/store/job_finish.go",
			"`delete from jobs where id = $1 and rev = $2 and (kept_at is null or kept_at < $3)`, j.ID, j.Rev,", "`delete from jobs where id = $1 and rev >= $2 and (kept_at is null or kept_at < $3)`, j.ID, j.Rev,",
		},
		{
			"a lane runs two jobs at once", "internal/queue/board.go",
			"	if l.holder == nil && len(l.waiting) > 0 {", "	if len(l.waiting) > 0 {",
		},
		{
			"a grant that was revoked still runs", "internal/grant/check.go",
			"	case !g.RevokedAt.IsZero():", "	case g.RevokedAt.After(now):",
		},
		{
			"an approval is good for another call", "internal/workflow/approve.go",
			"a.State == mutationstore.ApprovalApproved && a.Hash == hash {", "a.State == mutationstore.ApprovalApproved && hash != \"\" {",
		},
		{
			"a cursor goes on before its rows are there", "internal/source/fetching.go",
			"	var sum sourcestore.SourceProgress\n	var elsewhere", "	if f.def.Incremental != nil && page.Mark != \"\" {\n		raw, _ := json.Marshal(page.Mark)\n		if err := f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {\n			return sourcestore.In(tx).SourceSucceeded(ctx, f.view.source.ID, raw)\n		}); err != nil {\n			return err\n		}\n	}\n	var sum sourcestore.SourceProgress\n	var elsewhere",
		},
		{
			"of slots that were missed two run, and not the last one", "internal/schedule/missed.go",
			"	case policy == timing.Last:\n		most = 1", "	case policy == timing.Last:\n		most = 2",
		},
		{
			"producers begin while everything is halted", "internal/workflow/session.go",
			"if st.do.starts() && e.cfg.Halt().Active() {", "if st.do.starts() && st.do != actProduce && e.cfg.Halt().Active() {",
		},
		{
			"retention removes a call of which nobody knows", "internal/store/prunestore/other.go",
			"case when m.resolved_at is null or m.resolved_at >= $2 or m.kept_for is not null or m.state not in ('applied', 'failed', 'skipped') then 1 else 0 end", "case when m.resolved_at >= $2 then 1 else 0 end",
		},
		{
			"events are not given back", "internal/workflow/holdings.go",
			"		_, err = eventstore.In(tx).ReleaseEvents(ctx, s.RunID)", "		if s.RunID == \"\" {\n			_, err = eventstore.In(tx).ReleaseEvents(ctx, s.RunID)\n		}",
		},
		{
			"slots run beside each other", "internal/schedule/take.go",
			"	return step{again: tx.Now.Add(whileWaiting)}, len(running) > 0, nil // its end wakes this one", "	return step{again: tx.Now.Add(whileWaiting)}, false, nil",
		},
		{
			"a deleted schedule goes on", "internal/schedule/take.go",
			"	case !a.schedule.DeletedAt.IsZero():", "	case a.schedule.DeletedAt.After(tx.Now):",
		},
		{
			"what a wrong clock dated ahead is never fulfilled", "internal/store/workflowstore/producer_schedule.go",
			"when requested_at > $4 then $4 else", "when requested_at > $4 then requested_at else",
		},
		{
			"the message id of an event that is repeated is not looked at", "internal/store/eventstore/event_publish.go",
			"			payload = case when e.status = 'pending' then excluded.payload else e.payload end,\n", "			payload = case when e.status = 'pending' then excluded.payload else e.payload end,\n			status = case when e.status = 'consumed' then 'pending' else e.status end,\n",
		},
	}
}

// ofReviewers are slips that a reader could overlook: a condition that is missing, a
// wake-up that is forgotten, a bound that is off by a little, what is not kept.
func ofReviewers() []bug {
	return []bug{
		{
			"a node that beat meanwhile is buried all the same", "internal/store/lease.go",
			"delete from nodes where id = $1 and beat = $2`, id, beat)", "delete from nodes where id = $1 and beat >= $2`, id, beat)",
		},
		{
			"the answer to a graph wakes nobody", "internal/schedule/answer.go",
			"	return s.arm(ctx, tx, sch, slot.ScheduledFor, tx.Now)", "	_ = slot\n	return nil",
		},
		{
			"what a person does with a workflow wakes nobody", "internal/workflow/settle.go",
			"	return s.arm(ctx, tx, w, tx.Now)", "	return nil",
		},
		{
			"the lease of a worker is taken back a second early", "internal/store/job_lease.go",
			"returning `+heldColumns, task, Millis(tx.Now), limit)", "returning `+heldColumns, task, Millis(tx.Now.Add(time.Second)), limit)",
		},
		{
			"how often a lane failed is not kept", "internal/store/runstore/retry.go",
			"set retry_count = $3, crash_count = $4,", "set retry_count = retry_count + 0 * $3, crash_count = $4,",
		},
		{
			"events are reserved by their ids, whatever their topic", "internal/store/eventstore/event.go",
			"where workflow_id = $1 and topic = $2 and status = 'pending'`+own+`", "where workflow_id = $1 and $2 = $2 and status = 'pending'`+own+`",
		},
		{
			"any open slot is taken for the next one", "internal/schedule/settle.go",
			"there = there || leadsOn(sch, slot)", "there = true",
		},
		{
			"an approval is not spent by the call", "internal/workflow/approve.go",
			"	return mutationstore.In(tx).MoveApproval(ctx, x.approval.ID, mutationstore.ApprovalApproved, mutationstore.ApprovalUsed, \"\")", "	return nil",
		},
		{
			"claims that wait find no rest in a halt", "internal/worker/line.go",
			"	if found.halted {", "	if found.halted && found.more {",
		},
		{
			"who lost an execution ends it", "internal/store/executionstore/execution.go",
			"		where idempotency_key = $1 and owner = $2 and ok is null`, key, owner, oneIf(o.OK)", "		where idempotency_key = $1 and $2 = $2 and ok is null`, key, owner, oneIf(o.OK)",
		},
	}
}

// ofOthers are those of somebody who did not know what the simulator looks for.
func ofOthers() []bug {
	return []bug{
		{
			"a hint that cannot be sent is forgotten", "internal/queue/hint.go",
			"\t\t\th.keep(said) // all of it: hearing twice does no harm\n", "",
		},
		{
			"nobody looks when hints can be heard again", "internal/queue/hint.go",
			"\t\tq.sweep()\n\t\tq.lookAround() // who joined", "\t\tq.lookAround() // who joined",
		},
		{
			"a fetch that failed is not tried again", "internal/queue/fetch.go",
			"\t\t\tk.cursors[levelOf(c.Priority)].dirty = true\n\t\t}\n\t}\n\tb.refills = append", "\t\t\tk.cursors[levelOf(c.Priority)].dirty = false\n\t\t}\n\t}\n\tb.refills = append",
		},
		{
			"a bucket is taken whatever its epoch is", "internal/store/lease.go",
			"where id = $2 and epoch = $3`, node, b.ID, b.Epoch)", "where id = $2 and $3 = $3`, node, b.ID, b.Epoch)",
		},
		{
			"the epoch of a bucket that is taken stays as it was", "internal/store/lease.go",
			"set node = $1, epoch = epoch + 1 where id = $2 and epoch = $3`, node, b.ID, b.Epoch)\n\t\t\tif err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t\tif n == 1 {\n\t\t\t\tgot = append(got, Bucket{b.ID, node, b.Epoch + 1})", "set node = $1, epoch = epoch where id = $2 and epoch = $3`, node, b.ID, b.Epoch)\n\t\t\tif err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t\tif n == 1 {\n\t\t\t\tgot = append(got, Bucket{b.ID, node, b.Epoch})",
		},
		{
			"nothing is read again after a suspension", "internal/queue/board_work.go",
			"\tk.draining, k.suspended, k.leaving = false, false, false\n\tb.reread(k.id)", "\tk.draining, k.suspended, k.leaving = false, false, false",
		},
		{
			"a run that was cut off is not counted", "internal/queue/worker.go",
			"\tj.Recovered = true\n\tj.Attempt++\n", "\tj.Recovered = true\n",
		},
		{
			"one attempt too many", "internal/queue/task.go",
			"(limit > 0 && j.Attempt+1 >= limit)", "(limit > 0 && j.Attempt >= limit)",
		},
		{
			"a shutdown spends an attempt", "internal/queue/task.go",
			"\tcase errors.Is(cause, ErrShutdown), errors.Is(cause, ErrLeaseLost)", "\tcase errors.Is(cause, ErrLeaseLost)",
		},
		{
			"a retry overwrites the newer job", "internal/store/job_finish.go",
			"\t\t\twhere id = $1 and rev = $2`, j.ID, j.Rev, Millis(f.RunAt), j.Attempt+1", "\t\t\twhere id = $1 and $2 = $2`, j.ID, j.Rev, Millis(f.RunAt), j.Attempt+1",
		},
		{
			"what a lane left in the table is forgotten", "internal/queue/board.go",
			"\t\tl.more, l.missed = true, true\n\t\tb.forget(e)", "\t\tl.missed = true\n\t\tb.forget(e)",
		},
	}
}

// ofRuns are more of those: of runs of workflows.
func ofRuns() []bug {
	return []bug{
		{
			"the key of a call that was not there is not kept", "internal/workflow/ask.go",
			"mutationstore.MutationChange{To: pawl.MutationFailed, ResolvedBy: \"reconcile\", KeepFor: actOf(row, prepared)})", "mutationstore.MutationChange{To: pawl.MutationFailed, ResolvedBy: \"reconcile\"})",
		},
		{
			"a rejection does not pause", "internal/workflow/resolve.go",
			"\t} else if v.workflow.Desired == desiredActive {", "\t} else if false && v.workflow.Desired == desiredActive {",
		},
		{
			"a workflow does not back off", "internal/workflow/choose.go",
			"\t\tif v.retry.NextAt.After(v.now) {", "\t\tif false && v.retry.NextAt.After(v.now) {",
		},
		{
			"a run begins although the workflow was changed", "internal/workflow/session.go",
			"\t\tif err := workflowstore.In(tx).ExpectRevision(ctx, x.id, x.view.workflow.Revision); err != nil {\n\t\t\treturn runstore.Run{}, err\n\t\t}\n\t\treturn x.ledger.Enter", "\t\treturn x.ledger.Enter",
		},
		{
			"a request during a run counts as fulfilled", "internal/workflow/produce.go",
			"scheduleRow(x.id, p, planned{}, at), x.run.StartedAt)", "scheduleRow(x.id, p, planned{}, at), tx.Now)",
		},
		{
			"nobody is told that a workflow stopped", "internal/workflow/execute.go",
			"\t\treturn o.Run, x.settleView(ctx, tx, x.view)", "\t\treturn o.Run, nil",
		},
		{
			"a partition that is woken is not armed", "internal/workflow/partition_place.go",
			"\treturn s.handOut(ctx, tx, v.workflow, v.config, v.part.Handler, \"\")\n}\n\n// takePlace", "\treturn nil\n}\n\n// takePlace",
		},
	}
}

// ofWorkersAndTimes are the rest of those.
func ofWorkersAndTimes() []bug {
	return []bug{
		{
			"an attempt whose worker vanished is not counted", "internal/store/job_lease.go",
			"Ending{Verdict: Retry, RunAt: j.RunAt, Error: leaseEnded}", "Ending{Verdict: Snooze, RunAt: j.RunAt, Error: leaseEnded}",
		},
		{
			"a lease that is extended ends as before", "internal/store/job_lease.go",
			"set lease_until = $3 where `+leaseOf", "set lease_until = lease_until + 0 * $3 where `+leaseOf",
		},
		{
			"one attempt too many for workers", "internal/store/job_lease.go",
			"j.MaxAttempts > 0 && j.Attempt+1 >= j.MaxAttempts", "j.MaxAttempts > 0 && j.Attempt >= j.MaxAttempts",
		},
		{
			"workers are given jobs before their time", "internal/store/dialect_sqlite.go",
			"and priority = $3 and run_at <= $4 and `+notInHand", "and priority = $3 and run_at <= $4 + 1500 and `+notInHand",
		},
		{
			"what a worker said twice is lost", "internal/store/job_lease.go",
			"\t\tif e.List[k].Verdict != Done || !known[e.List[k].ID] {", "\t\tif true || e.List[k].Verdict != Done || !known[e.List[k].ID] {",
		},
		{
			"the backoff of a worker's failure is forgotten", "internal/store/job_lease.go",
			"\t\tf.RunAt = tx.Now.Add(e.Backoff(j.ID, j.Attempt+1))", "\t\tf.RunAt = tx.Now",
		},
		{
			"a rate forgets what it handed out in a slice", "internal/store/job_rate.go",
			"set starts = s.starts + excluded.starts,", "set starts = excluded.starts,",
		},
		{
			"another attempt of a slot does not wait", "internal/schedule/take.go",
			"\tif retry.NextAt.After(tx.Now) {", "\tif false && retry.NextAt.After(tx.Now) {",
		},
		{
			"what is replaced is not stopped", "internal/schedule/take.go",
			"\t\ttx.AfterCommit(func() { a.cancelElsewhere(context.WithoutCancel(ctx), key) })\n\t\tended, err := a.endWaiting", "\t\t_ = key\n\t\tended, err := a.endWaiting",
		},
		{
			"another answer is passed on", "internal/schedule/answer.go",
			"\ta.question, a.resume = q.ID, q.Answer\n\treturn step{execute: true}, a.settleLane", "\ta.question, a.resume = q.ID, json.RawMessage(\"false\")\n\treturn step{execute: true}, a.settleLane",
		},
		{
			"a second answer takes the place of the first", "internal/store/executionstore/graph_question.go",
			"where run_id = $1 and answer is null`,", "where run_id = $1`,",
		},
		{
			"a source does not back off", "internal/source/gate.go",
			"\tif v.retry.Ready(budget, v.now) {", "\tif v.retry.Ready(budget, v.now.Add(10*time.Minute)) {",
		},
		{
			"a source that fetched does not look again", "internal/source/lane.go",
			"\treturn d.at, s.settleOnce(ctx, v)\n}\n\n// halts reports", "\treturn time.Time{}, s.settleOnce(ctx, v)\n}\n\n// halts reports",
		},
	}
}

var found = regexp.MustCompile(`found by history (\d+), after (\S+) of a processor`)

func main() {
	seeds := flag.Int("seeds", 10_000, "how many histories at most")
	only := flag.String("only", "", "only bugs whose name has this in it")
	compare := flag.Bool("compare", false, "draw the lengths and kinds of histories evenly, too")
	first := flag.Int("first", 0, "leave out so many of the list")
	flag.Parse()
	missed := 0
	for i, b := range known() {
		if i < *first || !strings.Contains(b.name, *only) {
			continue
		}
		verdicts, err := try(context.Background(), b, *seeds, *compare)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
			os.Exit(2)
		}
		if !strings.HasPrefix(verdicts[0], "history") {
			missed++
		}
		_, _ = fmt.Fprintf(os.Stdout, "| %s | %s |\n", b.name, strings.Join(verdicts, " | "))
	}
	if missed > 0 {
		_, _ = fmt.Fprintf(os.Stdout, "%d were not found\n", missed)
		os.Exit(1)
	}
}

// try plants one bug and lives histories until it is found.
func try(ctx context.Context, b bug, seeds int, compare bool) (verdicts []string, err error) {
	dir, err := os.MkdirTemp("", "plant")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system removes it some day
	text, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	if strings.Count(string(text), b.was) != 1 {
		return nil, fmt.Errorf("%s has %d places of the bug, not one", b.file, strings.Count(string(text), b.was))
	}
	broken := filepath.Join(dir, "broken.go")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), b.was, b.is, 1)), 0o600); err != nil {
		return nil, err
	}
	where, err := filepath.Abs(b.file)
	if err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{where: broken}})
	if err != nil {
		return nil, err
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulate.test")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-overlay", file, "-o", program, "./internal/simulate").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	ways := []bool{false}
	if compare {
		ways = append(ways, true)
	}
	for _, even := range ways {
		verdict, err := live(ctx, program, seeds, even)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, nil
}

// live lives histories until one fails.
func live(ctx context.Context, program string, seeds int, even bool) (string, error) {
	run := exec.CommandContext(ctx, program, "-test.run", "^TestHistories$", "-test.v", "-test.timeout", "1h", "-long", "-seeds", fmt.Sprint(seeds), fmt.Sprintf("-even=%v", even))
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Run(); err == nil {
		used := run.ProcessState.UserTime() + run.ProcessState.SystemTime()
		return fmt.Sprintf("not found in %d histories, %s", seeds, used.Round(100*time.Millisecond)), nil
	}
	m := found.FindSubmatch(out.Bytes())
	if m == nil {
		return "", fmt.Errorf("it ended otherwise:\n%s", out.String())
	}
	return fmt.Sprintf("history %s, %s", m[1], m[2]), nil
}
