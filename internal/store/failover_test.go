package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// Of several servers the one that can be written to is used, whichever is named
// first, and although the URL does not ask for it. One that is silent does not
// keep the others from being tried.
func TestOfSeveralServersTheWritableOneIsUsed(t *testing.T) {
	primary := pgtest.NewServer(t)
	standby := primary.Standby()
	silent := proxy.New(t, primary.URL())
	silent.Mute()
	for name, url := range map[string]string{
		"the primary first":  primary.BothURL(standby),
		"the standby first":  standby.BothURL(primary),
		"a silent one first": strings.Replace(primary.URL(), "127.0.0.1", silent.Host()+",127.0.0.1", 1),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*nextServerAfter)
			defer cancel()
			begun := time.Now()
			db, err := Open(ctx, url, Options{})
			if err != nil {
				t.Fatalf("open after %s: %v", time.Since(begun), err)
			}
			defer db.Close() //nolint:errcheck // the test is over
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				_, err := tx.Enqueue(ctx, []JobSpec{{Task: "t"}})
				return err
			})
		})
	}
}

func TestSeveralServersAreShownWithoutSecrets(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:hunter2@a:1,b:2/db?sslmode=disable": "postgres://a:1,b:2/db",
		"postgres://u:hunter2@a:1,b/db":                   "postgres://a:1,b:5432/db",
		"postgres://u:hunter2@a,b/db":                     "postgres://a,b/db",
	} {
		if got := redactURL(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}
