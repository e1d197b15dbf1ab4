package source

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// B-02, B-21, B-22, B-36: a source that never ran is due, fetches every page in
// one transaction each, and is due again when its interval has passed.
func TestAFetchHoldsWhatTheAPIHolds(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for name, c := range map[string]struct{ path, extra string }{
			"page":   {"/pages", byPage},
			"offset": {"/offset", "offsetPagination: {offsetParam: offset, limitParam: limit, limit: 4}\n"},
			"cursor": {"/cursor", "cursorPagination: {cursorParam: cursor, nextCursorPath: cursor}\n"},
			"link":   {"/link", "linkPagination: {header: Link}\n"},
			"next":   {"/next", "linkPagination: {nextPath: next}\n"},
			"whole":  {"/whole", ""},
		} {
			src := k.apply(definition(name, c.path, c.extra+"schedule: interval:30m\n"))
			begun := time.Now()
			at := k.work(src)
			k.wantStatus(name, pawl.StatusCommitted)
			if got := k.items(name); !slices.Equal(got, k.api.all()) {
				t.Errorf("%s: the table holds %v, the API %v", name, got, k.api.all())
			}
			if wait := at.Sub(begun); wait < 29*time.Minute || wait > 31*time.Minute {
				t.Errorf("%s: it looks again after %s, want 30m", name, wait)
			}
			asked := k.api.asked()
			if k.work(src); k.api.asked() != asked {
				t.Errorf("%s: it fetched again before it was due", name)
			}
		}
	})
}

// rows that are there already are no news, and an empty fetch is a
// success that counts for the schedule.
func TestAFetchWithoutNewsIsASuccess(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		k.work(src)
		k.change(`update source_state set last_success_at = 1`)
		k.api.fill(11)
		k.work(src)
		k.change(`update source_state set last_success_at = 1`)
		k.work(src)
		d, err := k.s.Describe(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Recent) != 3 || d.Recent[1].RowsNew != 1 || d.Recent[0].RowsNew != 0 || d.Recent[0].Same != 11 || d.State.RowsTotal != 11 {
			t.Errorf("the runs are %+v and %d rows in all, want 10, 1 and 0 new ones", d.Recent, d.State.RowsTotal)
		}
		k.api.fill(0)
		k.change(`update source_state set last_success_at = 1`)
		if at := k.work(src); !at.After(time.Now()) {
			t.Error("an empty fetch is due again at once")
		}
		k.wantStatus("s", pawl.StatusCommitted)
	})
}

// B-12, B-13, B-14, B-15, B-16, B-17, B-18, B-38, B-40, B-41, B-42, B-43, B-44,
// B-47, B-48, X-43, X-44: failures wait 2^n
// minutes, the budget holds for its period whatever is restarted, and a period
// that is over begins anew.
func TestRetriesSpendABudgetThatResets(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage+"execution: {maxRetries: 3, retryResetPeriod: 1d}\n"))
		if n := k.column(`select lane from retries where kind = 'source'`); !slices.Equal(n, []string{"s"}) {
			t.Fatalf("the retry rows are those of %v, want one of s from the beginning", n)
		}
		k.api.on(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "down", http.StatusBadGateway)
			return true
		})
		for n, minutes := range []int{2, 4} {
			begun := time.Now()
			at := k.work(src)
			if wait := at.Sub(begun).Round(time.Minute); wait != time.Duration(minutes)*time.Minute {
				t.Fatalf("after failure %d it waits %s, want %dm", n+1, wait, minutes)
			}
			asked := k.api.asked()
			k.start("n" + string(rune('a'+n))) // a restart changes nothing
			if k.work(src); k.api.asked() != asked {
				t.Fatal("it did not wait for its backoff")
			}
			k.change(`update retries set next_retry_at = 1`)
		}
		at := k.work(src)
		v := k.wantStatus("s", pawl.StatusPausedTransient)
		if word, issue := v.status(); word != run.NeedsAttention || issue != run.IssueRetriesUsedUp || v.retry.Count != 3 {
			t.Errorf("it is %s (%s) after %d failures, want Needs attention", word, issue, v.retry.Count)
		}
		if len(k.notices) != 1 || k.notices[0].What != "needs_attention" {
			t.Errorf("people were told %v, want once", k.notices)
		}
		if wait := time.Until(at); wait < 23*time.Hour || wait > 24*time.Hour {
			t.Errorf("an exhausted source looks again after %s, want the end of its period", wait)
		}
		k.change(`update retries set next_retry_at = 1`)
		asked := k.api.asked()
		if k.work(src); k.api.asked() != asked {
			t.Error("an exhausted source ran within its period")
		}
		k.api.on(nil)
		k.change(`update retries set period_start = $1`, time.Now().Add(-25*time.Hour).UnixMilli())
		k.work(src)
		if v := k.wantStatus("s", pawl.StatusCommitted); v.retry.Count != 0 || v.row.Attempt != 4 {
			t.Errorf("after the success %d failures are left and it is attempt %d, want 0 and 4", v.retry.Count, v.row.Attempt)
		}
		if len(k.notices) != 2 || k.notices[1].What != "recovered" {
			t.Errorf("people were told %v, want that it recovered", k.notices)
		}
	})
}

// What ends a fetch is in the row of its lane, and people are told, even if the
// process ends right after it.
func TestAFailedFetchIsInTheRowOfItsLane(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		k.api.on(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return true
		})
		k.fault = func(place string) error {
			if place == "stopped" {
				return errFault
			}
			return nil
		}
		if _, err := k.s.work(t.Context(), k, src.ID); !errors.Is(err, errFault) {
			t.Fatalf("it went on: %v", err)
		}
		k.checkRow("s")
		if len(k.notices) != 1 || k.notices[0].Issue != run.IssueSignIn {
			t.Errorf("people were told %v", k.notices)
		}
		k.fault = nil
		pause := func(ctx context.Context, tx *store.Tx, name, by string) (bool, error) {
			return k.s.Pause(ctx, tx, name, by, lane.PauseTerms{})
		}
		for _, do := range []func(ctx context.Context, tx *store.Tx, name, by string) (bool, error){pause, k.s.Resume} { // which mends nothing
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := do(ctx, tx, "s", "t")
				return err
			})
			k.work(src)
		}
		if len(k.notices) != 1 {
			t.Errorf("people were told %v", k.notices)
		}
	})
}

// B-32, B-33, B-34, B-35, B-36, B-37, B-39, X-40, X-45: the timeout covers the whole fetch, aborts the
// call under way, keeps the pages before it and counts as a failure.
func TestATimeoutKeepsThePagesBeforeIt(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		gone := make(chan struct{}, 1)
		k.api.on(func(n int, _ http.ResponseWriter, r *http.Request) bool {
			if n < 3 {
				return false
			}
			<-r.Context().Done()
			gone <- struct{}{}
			return true
		})
		src := k.apply(definition("s", "/pages", byPage+"execution: {timeout: 1}\n"))
		k.work(src)
		v := k.wantStatus("s", pawl.StatusPausedTransient)
		if v.row.ErrorCode != "timeout" || !strings.HasSuffix(v.row.ErrorMessage, "longer than 1s; the 2 pages that were written stay") || v.retry.Count != 1 {
			t.Errorf("it failed with %s (%s) and %d failures, want a timeout that counts", v.row.ErrorCode, v.row.ErrorMessage, v.retry.Count)
		}
		select {
		case <-gone:
		case <-time.After(90 * time.Second):
			t.Error("the call went on")
		}
		if got := k.items("s"); !slices.Equal(got, k.api.all()[:6]) {
			t.Errorf("the table holds %v, want the first two pages", got)
		}
	})
}

// X-34, lesson 47: a crash at any place of a fetch loses the page in hand and
// nothing else; the next owner completes the table without duplicates.
func TestACrashAtAnyPlaceLosesNothing(t *testing.T) {
	large := strings.Replace(byPage, "limit: 3", "limit: 250", 1) // of which those after the first are copied
	for name, c := range map[string]struct{ path, extra string }{
		"page": {"/pages", byPage}, "cursor": {"/cursor", "cursorPagination: {cursorParam: cursor, nextCursorPath: cursor}\n"},
		"replace": {"/pages", byPage + "write: {mode: replace, key: [id]}\n"}, "large": {"/pages", large},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				if name == "large" {
					k.api.fill(900)
				}
				text := definition(name, c.path, c.extra)
				if strings.Contains(c.extra, "replace") {
					text = strings.Replace(text, "write: {key: [id]}\n", "", 1)
				}
				src := k.apply(text)
				for crash := 1; ; crash++ {
					left := crash
					k.fault = func(string) error {
						if left--; left == 0 {
							return errFault
						}
						return nil
					}
					_, err := k.s.work(t.Context(), k, src.ID)
					k.fault = nil
					if err != nil && !errors.Is(err, errFault) {
						t.Fatal(err)
					}
					if left > 0 {
						break // it came to its end
					}
					k.start("n")
					k.work(src)
					if got := k.items(name); !slices.Equal(got, k.api.all()) {
						t.Fatalf("after crash %d the table holds %v, want %v", crash, got, k.api.all())
					}
					k.wantStatus(name, pawl.StatusCommitted)
					k.change(`delete from items`)
					k.change(`update source_state set last_success_at = null`)
					k.change(`update retries set crash_count = 0`)
				}
			})
		})
	}
}

// X-41, context 3.16: our own limit puts a fetch off in the middle, without
// spending the budget, and it goes on where it was.
func TestOurOwnLimitDefers(t *testing.T) {
	pgtestBoth(t, "kind: provider\ndomain: HOST\nlimit: 2\nperiod: 1h\n", func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		at := k.work(src)
		v := k.wantStatus("s", pawl.StatusPausedTransient)
		if v.row.ErrorCode != codeDeferred || v.retry.Count != 0 || k.api.asked() != 2 {
			t.Fatalf("it stopped with %s (%s), %d failures and %d calls; want deferred, 0 and 2", v.row.ErrorCode, v.row.ErrorMessage, v.retry.Count, k.api.asked())
		}
		if wait := time.Until(at); wait < 58*time.Minute || wait > time.Hour {
			t.Errorf("it looks again after %s, want the next window", wait)
		}
		if word, _ := v.status(); word != run.Running {
			t.Errorf("it is %s, want Running: it goes on by itself", word)
		}
		k.work(src)
		if k.api.asked() != 2 {
			t.Error("looking consumed a call, or it did not wait")
		}
		k.change(`update rate_limiter_state set window_start = 1`)
		k.work(src)
		k.wantStatus("s", pawl.StatusCommitted)
		if got := k.items("s"); !slices.Equal(got, k.api.all()) || k.api.asked() != 4 {
			t.Errorf("the table holds %v after %d calls, want all after 4", got, k.api.asked())
		}
	})
}

// B-23: the four gates are told apart.
func TestEveryGateIsToldApart(t *testing.T) {
	pgtestBoth(t, "kind: provider\ndomain: HOST\nlimit: 1\nperiod: 1h\n", func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/whole", ""))
		closed := func() (names []string) {
			t.Helper()
			y, err := k.s.Why(t.Context(), lane.Viewer{}, "s", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range y.Gates {
				if !g.Open {
					names = append(names, g.Name)
				}
			}
			return names
		}
		if got := closed(); len(got) != 0 {
			t.Errorf("closed are %v, want none for a source that never ran", got)
		}
		k.work(src)
		if got := closed(); !slices.Equal(got, []string{gateSchedule, gateQuota}) {
			t.Errorf("closed are %v, want schedule and quota after a run", got)
		}
		k.change(`update retries set retry_count = 1, next_retry_at = $1`, time.Now().Add(time.Hour).UnixMilli())
		if got := closed(); !slices.Equal(got, []string{gateSchedule, gateQuota, gateRetry}) {
			t.Errorf("closed are %v, want retry too", got)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Pause(ctx, tx, "s", "me", lane.PauseTerms{})
			return err
		})
		if got := closed(); got[0] != gateWanted {
			t.Errorf("closed are %v, want wanted first", got)
		}
	})
}
