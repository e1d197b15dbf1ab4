package source

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// What is put off by our own limit or by a stop of the server is nobody's failure: it
// runs, and recovers; the same status for another reason is one.
func TestWhatIsPutOffIsNoFailure(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(definition("s", "/whole", ""))
		for _, c := range []struct {
			code   string
			status pawl.Status
			want   run.Issue
		}{
			{codeDeferred, pawl.StatusPausedTransient, run.IssueRecovering},
			{codeInterrupted, pawl.StatusPausedTransient, run.IssueRecovering},
			{"http_500", pawl.StatusPausedTransient, ""},
			{codeDeferred, pawl.StatusCommitted, ""},
		} {
			v := k.look("s")
			v.row.Status, v.row.ErrorCode, v.row.ErrorMessage, v.newest.Status = c.status, c.code, "It waits for its turn.", c.status
			l := v.lane(sourcestore.SourceRun{})
			if (l.Issue == run.IssueRecovering && l.Sentence == "It waits for its turn.") != (c.want == run.IssueRecovering) {
				t.Errorf("%s, %s: it is %s, %s: %s", c.status, c.code, l.State, l.Issue, l.Sentence)
			}
		}
	})
}

// A run that is asked for is asked for durably: the job is due at once, the audit log has
// it, and who watches hears of it. The source that runs says how to end it, and one that
// rests says nothing.
func TestRunNowArmsAndTells(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/whole", "schedule: {interval: 1h}\n"))
		k.work(src)
		before := len(k.armed.jobs)
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.RunNow(ctx, tx, "s", "ada (token x)") })
		if jobs := k.armed.jobs[before:]; len(jobs) != 1 || time.Until(jobs[0].RunAt) > time.Minute {
			t.Errorf("armed: %+v", jobs)
		}
		if who := k.column(`select actor from audit_log where action = 'source.run' and subject = 'source:s'`); !slices.Equal(who, []string{"ada (token x)"}) {
			t.Errorf("the audit log says %v", who)
		}
		if !k.heard("requested") {
			t.Errorf("nobody heard: %v", k.changes)
		}
		v := k.look("s")
		if do := v.remedy(run.IssueNone); do != "" {
			t.Errorf("it rests: %s", do)
		}
		v.row.Status = pawl.StatusActive
		if do := v.remedy(run.IssueNone); do != run.Command("cancel", v.row.ID) {
			t.Errorf("it runs: %s", do)
		}
	})
}

// A source whose pause is over tells whoever watches.
func TestTheEndOfAPauseIsTold(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(definition("s", "/whole", ""))
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Pause(ctx, tx, "s", "ada", lane.PauseTerms{Until: time.Now().Add(time.Hour)})
			return err
		})
		k.change(`update lanes set paused_until = 1 where lane = 's'`)
		if _, err := k.s.proceed(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if !k.heard("resumed") {
			t.Errorf("nobody heard: %v", k.changes)
		}
	})
}

// heard reports whether who watches was told of something.
func (k *kit) heard(what string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.changes, func(c lane.Change) bool { return c.What == what && c.Ref == refOf("s") })
}

// The gate says how often it failed only if it failed.
func TestTheRetryGateSaysHowOftenItFailed(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(definition("s", "/pages", byPage+"execution: {maxRetries: 2, retryResetPeriod: 1d}\n"))
		for count, says := range map[int]string{0: "It is not backing off.", 1: "It failed 1 of 2 times"} {
			v := k.look("s")
			v.retry.Count, v.retry.PeriodStart = count, v.now
			if g := v.gateRetry(); !g.Open || !strings.HasPrefix(g.Text, says) {
				t.Errorf("after %d failures: open %v, %q", count, g.Open, g.Text)
			}
		}
	})
}

// What comes due is told by name and for no more than was asked, and that there is more.
func TestDueIsBounded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, name := range []string{"a", "b", "c"} {
			k.apply(definition(name, "/whole", "schedule: {interval: 1h}\n"))
		}
		for limit, want := range map[int]string{1: "a", 2: "a b", 3: "a b c", 9: "a b c"} {
			due, more, err := k.s.Due(t.Context(), "", time.Time{}, limit)
			var names []string
			for _, d := range due {
				names = append(names, d.Ref.Name)
			}
			if got := strings.Join(names, " "); err != nil || got != want || more != (limit < 3) {
				t.Errorf("up to %d: %s, more: %v (%v)", limit, got, more, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := k.s.Due(ctx, "", time.Time{}, 9); !errors.Is(err, context.Canceled) {
			t.Errorf("for nobody: %v", err)
		}
	})
}

// What a source did last is told by its newest run: each end in its own words.
func TestWhatASourceDidLast(t *testing.T) {
	run := func(status pawl.Status, code string) *view {
		v := &view{}
		v.row.ID, v.row.Status, v.row.ErrorCode, v.row.ErrorMessage = "r", status, code, "it was away"
		return v
	}
	last := sourcestore.SourceRun{RunID: "r", SourceProgress: sourcestore.SourceProgress{RowsRead: 5, Pages: 2, RowsNew: 3}}
	for want, v := range map[string]*view{
		"Defined":                            {},
		"Fetching: 5 rows in 2 pages so far": run(pawl.StatusActive, ""),
		"Fetched 5 rows, 3 new":              run(pawl.StatusCommitted, ""),
		"Cancelled":                          run(pawl.StatusCancelled, ""),
		"Delayed: it was away":               run(pawl.StatusPausedTransient, codeDeferred),
		"Failed: it was away":                run(pawl.StatusPausedTransient, "http_500"),
	} {
		if _, text := v.lastActivity(last); text != want {
			t.Errorf("it says %q, want %q", text, want)
		}
	}
	if _, text := run(pawl.StatusActive, "").lastActivity(sourcestore.SourceRun{RunID: "another"}); text != "Fetching" {
		t.Errorf("before it has a page: %q", text)
	}
}

// A retry that is due is tried now, and a later one when it comes.
func TestWhenItIsTriedAgainIsTold(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(definition("s", "/pages", byPage+"execution: {maxRetries: 3, retryResetPeriod: 1d}\n"))
		for wait, now := range map[time.Duration]bool{-time.Hour: true, time.Hour: false} {
			v := k.look("s")
			v.retry.Count, v.retry.PeriodStart, v.retry.NextAt = 1, v.now, v.now.Add(wait)
			if text := v.soon(); (text == "now") != now || strings.HasPrefix(text, "Next") {
				t.Errorf("after %v: %q", wait, text)
			}
		}
	})
}
