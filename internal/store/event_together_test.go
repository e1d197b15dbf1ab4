package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// Those who publish to a topic at once, some of them what is known already and some in
// SQL, get numbers of their own, in the order in which they are committed: whoever has
// read the number of a topic can see all events up to it.
func TestPublishersAtOnceHaveNumbersOfTheirOwn(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "triage", "in")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return eventstore.In(tx).SetSubscribed(ctx, w.ID, []string{"in"})
		})
		publish := func(id string) (p eventstore.Published, err error) {
			err = eventstore.Write(t.Context(), db, w.Name, "in", id, func(ctx context.Context, tx *store.Tx) error {
				p, err = eventstore.In(tx).Publish(ctx, w.ID, "run", []eventstore.NewEvent{event0("in", id, `1`)})
				return err
			})
			return p, err
		}
		inSQL := func(id string) (isNew bool, err error) {
			err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.QueryRow(ctx, `select pawl.publish($1, 'in', $2, '1')`, w.Name, id).Scan(&isNew)
			})
			return isNew, err
		}
		const publishers, each = 24, 12
		seen := map[int64]int64{} // events up to a number, when it was read
		var wg, watching sync.WaitGroup
		over := make(chan struct{})
		count := func(ctx context.Context, tx *store.Tx, upTo int64) (n int64, err error) {
			return n, tx.QueryRow(ctx, `select count(*) from events where workflow_id = $1 and seq <= $2`, w.ID, upTo).Scan(&n)
		}
		watching.Go(func() {
			for ended := false; !ended; {
				select {
				case <-over:
					ended = true
				default:
				}
				seqs := map[string]int64{}
				err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(eventstore.In(tx).AskTopicSeqs(ctx, w.ID, seqs), tx.Flush(ctx))
				})
				if err == nil {
					err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
						seen[seqs["in"]], err = count(ctx, tx, seqs["in"])
						return err
					})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		for i := range publishers {
			wg.Go(func() {
				for k := range each {
					id := fmt.Sprintf("%d-%d", i, []int{k, k - 1, k}[k%3]) // every second one of three is known
					known := k%3 == 1
					if db.Shared() && i%8 == 7 {
						if isNew, err := inSQL(id); err != nil || isNew == known {
							t.Errorf("%s in SQL: %v %v", id, isNew, err)
						}
						continue
					}
					if p, err := publish(id); err != nil || (p.Duplicate == 1) != known || (p.New == 1) == known {
						t.Errorf("%s: %+v %v", id, p, err)
					}
				}
			})
		}
		wg.Wait()
		close(over)
		watching.Wait()
		var events, numbers, last int64
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.QueryRow(ctx, `select count(*), count(distinct seq), max(seq) from events where workflow_id = $1`, w.ID).Scan(&events, &numbers, &last); err != nil {
				return err
			}
			for upTo, n := range seen {
				if now, err := count(ctx, tx, upTo); err != nil || now != n {
					t.Errorf("up to number %d there were %d events when it was read, and are %d (%v)", upTo, n, now, err)
				}
			}
			return nil
		})
		if seq := topicSeqs(t, db, w.ID)["in"]; events != publishers*each*2/3 || numbers != events || seq < last {
			t.Errorf("%d events have %d numbers up to %d, and the topic is at %d", events, numbers, last, seq)
		}
	})
}
