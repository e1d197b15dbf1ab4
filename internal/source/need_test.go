package source

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
)

func (k *kit) askForItems() (hindrance string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		hindrance, err = k.s.AskToFetch(ctx, tx, "items", "schedule nightly")
		return err
	})
	return hindrance
}

// What needs a source asks it as a person does, once, and not if it is about to fetch
// or must not; what keeps it from fetching is told.
func TestASourceIsAskedOnceByWhatNeedsIt(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("items", "/items", "schedule: daily\n"))
		asked := func() string {
			return strings.Join(k.column(`select actor || ' ' || subject from audit_log where action = 'source.run'`), ", ")
		}
		k.work(src)
		last := func() (at time.Time) {
			k.write(func(ctx context.Context, tx *store.Tx) (err error) {
				at, err = k.s.HoldFetched(ctx, tx, "items")
				return err
			})
			return at
		}
		paused := func() (is bool) {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				at, p, err := k.s.LastFetched(ctx, tx, "items")
				is = p && !at.IsZero()
				return err
			})
			return is
		}
		first := last()
		if paused() {
			t.Error("nobody paused it")
		}
		k.change(`update source_definitions set paused_at = 1`)
		if !paused() {
			t.Error("it is paused, and nobody knows")
		}
		k.change(`update source_definitions set paused_at = null`)
		if first.IsZero() {
			t.Error("it was fetched, and nobody knows")
		}
		for range 3 {
			if why := k.askForItems(); why != "" {
				t.Error(why)
			}
		}
		if got := asked(); got != "schedule nightly source:items" {
			t.Errorf("asked: %s", got)
		}
		k.duringTheCall(func() {
			if why := k.askForItems(); why != "" { // it fetches
				t.Error(why)
			}
		})
		k.work(src)
		if got := asked(); got != "schedule nightly source:items" || !last().After(first) {
			t.Errorf("asked: %s; fetched at %s, before at %s", got, last(), first)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Pause(ctx, tx, "items", "me", lane.PauseTerms{})
			return err
		})
		if why := k.askForItems(); !strings.HasPrefix(why, "Source items is paused, by me since ") {
			t.Error(why)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Resume(ctx, tx, "items", "me")
			return err
		})
		k.change(`update retries set retry_count = 1, next_retry_at = $1 where lane = 'items'`, time.Now().Add(time.Hour).UnixMilli())
		if why := k.askForItems(); !strings.HasPrefix(why, "Source items is backing off") {
			t.Error(why)
		}
		if got := asked(); got != "schedule nightly source:items" {
			t.Errorf("asked: %s", got)
		}
	})
}

// waiter is a kind whose one lane needs a source.
type waiter struct{ woken int }

func (w *waiter) Kind() pawl.Kind { return pawl.KindSchedule }
func (w *waiter) Freshened(_ context.Context, tx *store.Tx, _ string) error {
	tx.AfterCommit(func() { w.woken++ })
	return nil
}

func (w *waiter) NeedingName(_ context.Context, _ *store.Tx, lane, _ string) (string, error) {
	return "schedule " + lane, nil
}

// Whoever begins to wait while a fetch ends is woken by it, or sees that it ended.
func TestNobodyWaitsForAFetchThatHasEnded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("items", "/items", "schedule: daily\n"))
		w := &waiter{}
		book := k.s.cfg.Needs
		book.Use(w)
		needs := []client.Need{{Source: "items", MaxAge: "1h"}}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return book.Declare(ctx, tx, pawl.KindSchedule, "s", needs)
		})
		for i := range 20 {
			k.change(`update source_state set last_success_at = null, requested_at = $1`, time.Now().UnixMilli())
			w.woken = 0
			done := make(chan int, 1)
			go func() {
				stale := 0
				err := k.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
					list, err := book.Wait(ctx, tx, lane.Ref{Kind: pawl.KindSchedule, Name: "s"}, "s", needs)
					stale = len(list)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				done <- stale
			}()
			k.work(src)
			stale := <-done
			for waits := true; waits; { // it may have begun to wait, and asked, after the fetch had begun
				if waits = len(k.column(`select lane from needs where waits_since is not null`)) > 0; waits && len(k.column(`select source_id from source_state where last_success_at is not null and requested_at is null`)) > 0 {
					t.Fatalf("round %d: it waits for a fetch that has ended", i)
				} else if waits {
					k.work(src)
				}
			}
			if stale > 0 && w.woken != 1 {
				t.Errorf("round %d: woken %d times", i, w.woken)
			}
		}
		if _, err := k.s.Delete(t.Context(), "items", false, "", "me"); pawl.ErrorCode(err) != pawl.CodeConflict || !strings.Contains(fmt.Sprint(err), "schedule s") {
			t.Errorf("%v", err)
		}
	})
}
