package task

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

func TestPruneForgetsOnlyWhatIsOld(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // a test
		old, young := time.Now().Add(-8*24*time.Hour).UnixMilli(), time.Now().Add(-6*24*time.Hour).UnixMilli()
		count := func() (n int) {
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.QueryRow(ctx, `select count(*) from job_history`).Scan(&n)
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			for i := range 2500 {
				at := old
				if i < 10 {
					at = young
				}
				if _, err := tx.Exec(ctx, `insert into job_history (id, task, state, run_at, finished_at, attempt) values ($1, 't', 'succeeded', $2, $2, 1)`, i, at); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		err = Prune(db, slog.New(slog.DiscardHandler)).Run(t.Context(), &queue.Job{})
		if err == nil {
			t.Error("pruning must ask to be run again")
		}
		if n := count(); n != 10 {
			t.Errorf("%d rows left after %v, want the 10 young ones", n, time.Since(before))
		}
	})
}

func TestLogWritesOneLine(t *testing.T) {
	var out bytes.Buffer
	task := Log(slog.New(slog.NewTextHandler(&out, nil)))
	for payload, want := range map[string]string{`{"message":"hello\nworld"}`: `message="hello\nworld"`, `[1,2]`: `message=[1,2]`} {
		out.Reset()
		j := &queue.Job{Job: store.Job{ID: 7, Payload: json.RawMessage(payload)}}
		if err := task.Run(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %s", payload, got)
		}
	}
}
