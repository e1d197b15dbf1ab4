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
	"strings"
	"time"
)

// bug is a text that takes the place of another one in a file.
type bug struct {
	name, file, was, is string
}

// known are the bugs.
func known() []bug { return append(ofTheQueue(), ofTheRest()...) }

// ofTheQueue are those of lanes, leases, kinds and their rows.
func ofTheQueue() []bug {
	return []bug{
		{
			"a fence that always holds", "internal/store/dialect_sqlite.go",
			"	if errors.Is(err, ErrNoRow) {\n		return false, nil\n	}\n	return err == nil, err", "	if errors.Is(err, ErrNoRow) {\n		return true, nil\n	}\n	return err == nil, err",
		},
		{
			"the owner of a job is not told of it", "internal/queue/enqueue.go",
			"	q.board.mu.Unlock()\n	q.hints.due(foreign)\n}\n\n// doubtWaits", "	q.board.mu.Unlock()\n}\n\n// doubtWaits",
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
			"s.stood >= l.q.cfg.Lease {", "s.stood >= l.q.cfg.Lease/10 {",
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
			"err != nil || h.Active() { // nothing starts", "err != nil || h.ID < 0 { // nothing starts",
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

var found = regexp.MustCompile(`found by history (\d+)`)

func main() {
	seeds := flag.Int("seeds", 10_000, "how many histories at most")
	only := flag.String("only", "", "only bugs whose name has this in it")
	first := flag.Int("first", 0, "leave out so many of the list")
	flag.Parse()
	missed := 0
	for i, b := range known() {
		if i < *first || !strings.Contains(b.name, *only) {
			continue
		}
		verdict, err := try(context.Background(), b, *seeds)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
			os.Exit(2)
		}
		if !strings.HasPrefix(verdict, "history") {
			missed++
		}
		_, _ = fmt.Fprintf(os.Stdout, "| %s | %s |\n", b.name, verdict)
	}
	if missed > 0 {
		_, _ = fmt.Fprintf(os.Stdout, "%d were not found\n", missed)
		os.Exit(1)
	}
}

// try plants one bug and lives histories until it is found.
func try(ctx context.Context, b bug, seeds int) (string, error) {
	dir, err := os.MkdirTemp("", "plant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system removes it some day
	text, err := os.ReadFile(b.file)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), b.was) != 1 {
		return "", fmt.Errorf("%s has %d places of the bug, not one", b.file, strings.Count(string(text), b.was))
	}
	broken := filepath.Join(dir, "broken.go")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), b.was, b.is, 1)), 0o600); err != nil {
		return "", err
	}
	where, err := filepath.Abs(b.file)
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{where: broken}})
	if err != nil {
		return "", err
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulate.test")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-overlay", file, "-o", program, "./internal/simulate").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	run := exec.CommandContext(ctx, program, "-test.run", "^TestHistories$", "-test.v", "-test.timeout", "1h", "-long", "-seeds", fmt.Sprint(seeds))
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	began := time.Now()
	if err := run.Run(); err == nil {
		return fmt.Sprintf("not found in %d histories", seeds), nil
	}
	m := found.FindSubmatch(out.Bytes())
	if m == nil {
		return "", fmt.Errorf("it ended otherwise:\n%s", out.String())
	}
	return fmt.Sprintf("history %s, %s", m[1], time.Since(began).Round(100*time.Millisecond)), nil
}
