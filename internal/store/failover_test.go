package store

import (
	"context"
	"strings"
	"sync"
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

// Who waits for less time than a silent server is given, and asks for new
// connections each time, gets to the next server all the same.
func TestImpatienceReachesTheNextServer(t *testing.T) {
	url := pgtest.URL(t)
	first, second := proxy.New(t, url), proxy.New(t, url)
	db := open(t, strings.Replace(first.URL(), first.Host(), first.Host()+","+second.Host(), 1))
	t.Cleanup(func() { first.Cut(); second.Cut() })
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), nextServerAfter/2)
		defer cancel()
		_, err := db.hot.Exec(ctx, `select 1`)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	first.HalfOpen()
	first.Mute()
	begun := time.Now()
	for ask() != nil {
		db.Reconnect()
		if took := time.Since(begun); took > 4*nextServerAfter {
			t.Fatalf("after %s the second server is still not asked", took)
		}
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

// A transaction on a connection that died without a word does not keep a process
// from ending.
func TestCloseDoesNotWaitForTheSilentlyDead(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db, err := Open(t.Context(), p.URL(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.Write(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *Tx) error {
			if _, err := tx.Exec(ctx, `insert into write_probe (id, at) values (7, 7)`); err != nil {
				return err
			}
			p.HalfOpen()
			close(begun)
			_, err := tx.Exec(ctx, `update write_probe set at = 8 where id = 7`)
			return err
		})
	}()
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(4 * closeWait):
		t.Error("it waits for a dead connection")
	}
	p.Close() // now the dead one is told
	if err := <-ended; err == nil {
		t.Error("the transaction of a dead connection succeeded")
	}
}

// Connections that the server ended while nobody used them cost a reader nothing.
func TestAReadLeavesConnectionsThatEnded(t *testing.T) {
	db := open(t, pgtest.URL(t))
	var reading sync.WaitGroup
	reading.Add(5)
	everybody(5, func(int) {
		err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
			err := tx.Flush(ctx)
			reading.Done()
			reading.Wait() // each has a connection
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	const others = ` from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
	ended, left := int64(0), int64(1)
	if err := db.hot.QueryRow(t.Context(), `select count(pg_terminate_backend(pid))`+others).Scan(&ended); err != nil || ended < 5 {
		t.Fatalf("%d connections were ended: %v", ended, err)
	}
	for left > 0 {
		if err := db.hot.QueryRow(t.Context(), `select count(*)`+others).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
