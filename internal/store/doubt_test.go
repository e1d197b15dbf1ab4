package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// a commit whose answer is lost is not run again, and whoever wants to
// know is told that nobody knows.
func TestCommitWithoutAnAnswerIsInDoubtAndRunsOnce(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := open(t, p.URL())
	scratch(t, db)
	for name, write := range map[string]func(Func) error{
		"write":    func(fn Func) error { return db.Write(t.Context(), fn) },
		"together": func(fn Func) error { return db.WriteShared(t.Context(), "lane", fn) },
	} {
		runs, doubts, commits := 0, 0, 0
		p.LoseAnswers("COMMIT", 1)
		err := write(func(ctx context.Context, tx *Tx) error {
			runs++
			tx.InDoubt(func() { doubts++ })
			tx.AfterCommit(func() { commits++ })
			return insert(len(name), 1)(ctx, tx)
		})
		if !errors.Is(err, pawl.ErrUnavailable) || runs != 1 || doubts != 1 || commits != 0 {
			t.Errorf("%s: %v after %d runs, %d doubts, %d commits", name, err, runs, doubts, commits)
		}
	}
	if n := count(t, db, `select count(*) from scratch`); n != 2 {
		t.Errorf("%d rows, want the two that were committed", n)
	}
}

// Transactions that became one share the doubt; one that fails for a reason of
// its own is in none.
func TestPartyWithoutAnAnswerIsInDoubt(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := open(t, p.URL())
	scratch(t, db)
	busy, leave := make(chan struct{}, maxLeaders), make(chan struct{})
	ends := make(chan error, 64)
	for i := range maxLeaders {
		go func() {
			ends <- db.WriteShared(t.Context(), fmt.Sprint("leader", i), func(context.Context, *Tx) error { busy <- struct{}{}; <-leave; return nil })
		}()
	}
	for range maxLeaders {
		<-busy
	}
	told := make(chan int, 64)
	for i := range 8 {
		go func() {
			ends <- db.WriteShared(t.Context(), fmt.Sprint("lane", i), func(ctx context.Context, tx *Tx) error {
				tx.InDoubt(func() { told <- i })
				return insert(i, i)(ctx, tx)
			})
		}()
	}
	for waiting := 0; waiting < 8; {
		db.txGroup.mu.Lock()
		waiting = len(db.txGroup.waiting)
		db.txGroup.mu.Unlock()
	}
	p.LoseAnswers("COMMIT", -1)
	close(leave)
	failed := 0
	for range maxLeaders + 8 {
		if err := <-ends; err != nil {
			failed++
		}
	}
	p.KeepAnswers()
	if n := count(t, db, `select count(*) from scratch`); n != 8 || failed != 8 || len(told) != 8 { // who leads asked for nothing, so it committed nothing
		t.Errorf("%d rows, %d failed, %d in doubt", n, failed, len(told))
	}
}

// jobs whose insert was not answered are found to be there, under the ids
// they were given, or are told to be in doubt; never added twice.
func TestEnqueueWithoutAnAnswerAddsOnce(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := open(t, p.URL())
	p.LoseAnswers("INSERT", 1)
	jobs, err := db.EnqueueOwnTx(t.Context(), []JobSpec{{Task: "t"}, {Task: "t"}})
	if err != nil || len(jobs) != 2 || p.Lost() != 1 {
		t.Fatalf("%d jobs, %v, %d answers lost", len(jobs), err, p.Lost())
	}
	for _, j := range jobs {
		if got := reread(t, db, j.ID); got.ID != j.ID {
			t.Errorf("job %d is not there", j.ID)
		}
	}
	p.LoseAnswers("INSERT", 1)
	p.LoseAnswers("SELECT", 2) // the look, and once more on another connection
	jobs, err = db.EnqueueOwnTx(t.Context(), []JobSpec{{Task: "t"}})
	if !errors.Is(err, pawl.ErrUnavailable) || len(jobs) != 1 {
		t.Errorf("in doubt: %d jobs, %v", len(jobs), err)
	}
	if n := count(t, db, `select count(*) from jobs`); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
	p.Cut()
	p.Refuse()
	if jobs, err = db.EnqueueOwnTx(t.Context(), []JobSpec{{Task: "t"}}); !errors.Is(err, pawl.ErrUnavailable) || len(jobs) != 0 {
		t.Errorf("%d jobs in doubt, %v, although nothing was sent", len(jobs), err)
	}
}

// A connection that is accepted and never answered is given up, in every
// statement that has no other bound.
func TestSilentServerIsGivenUp(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := open(t, p.URL())
	scratch(t, db)
	t.Cleanup(p.Cut) // so that nothing waits for the dead
	db.maxTx = 300 * time.Millisecond
	p.HalfOpen()
	err := db.Write(t.Context(), insert(1, 1))
	if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("write: %v", err)
	}
	if err := db.Write(t.Context(), insert(2, 2)); err != nil {
		t.Errorf("a new connection was not used: %v", err)
	}
	p.HalfOpen()
	if _, err := db.Cluster(t.Context()); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("read: %v", err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.HalfOpen()
	if _, err := db.EnqueueOwnTx(t.Context(), []JobSpec{{Task: "t"}}); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("enqueue: %v", err)
	}
}

// What listens asks for a sign of life after a silence, so that a connection
// that died without a word is noticed.
func TestListenNoticesADeadConnection(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := open(t, p.URL())
	s, err := db.OpenLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Cleanup(p.Cut)
	done := make(chan error, 1)
	go func() { done <- s.Listen(t.Context(), "c", 200*time.Millisecond, p.HalfOpen, func(string) {}) }()
	if err := <-done; !errors.Is(err, ErrNoAnswer) {
		t.Errorf("listen ended with %v", err)
	}
	p.Mute()
	if _, err := db.OpenLink(t.Context()); err == nil {
		t.Error("a link was opened that nobody answers")
	}
}

// The bounds of a connection are below the lease of a node, on both ends.
func TestConnectionsAreBounded(t *testing.T) {
	db := open(t, pgtest.URL(t)+"&pool_max_conns=3")
	if db.pool.Config().MaxConns != 3 || db.hot.Config().MaxConns != hotConns {
		t.Errorf("%d and %d connections", db.pool.Config().MaxConns, db.hot.Config().MaxConns)
	}
	for name, want := range map[string]string{
		"idle_in_transaction_session_timeout": "4s", "lock_timeout": "5s",
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "10000",
	} {
		for _, q := range []pgQuerier{db.pool, db.hot} {
			var got string
			rows, err := q.Query(t.Context(), `select current_setting($1)`, name) //nolint:sqlclosecheck // Scan closes them
			if err := (Row{rows, err}).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
		}
	}
	if db.pool.Config().ConnConfig.ConnectTimeout != connectTimeout {
		t.Errorf("connecting takes up to %v", db.pool.Config().ConnConfig.ConnectTimeout)
	}
}

// A transaction that hangs half-open loses its locks before the lease is over.
func TestHungTransactionLosesItsLocks(t *testing.T) {
	url := pgtest.URL(t)
	p := proxy.New(t, url)
	frozen, healthy := open(t, p.URL()), open(t, url)
	taken, err := frozen.Take(t.Context(), "n1", Bucket{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	inside, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- frozen.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := tx.Fence(ctx, Fence{1, "n1", taken[0].Epoch}); err != nil {
				return err
			}
			close(inside)
			<-leave
			_, err := tx.Exec(ctx, `select 1`)
			return err
		})
	}()
	<-inside
	p.HalfOpen()
	began := time.Now()
	for n := 0; n == 0; {
		got, err := healthy.Take(t.Context(), "n2", taken[0])
		if err != nil {
			t.Fatal(err)
		}
		n = len(got)
	}
	if d := time.Since(began); d > 9*time.Second {
		t.Errorf("the bucket of a frozen transaction was free after %v", d)
	}
	p.Cut()
	close(leave)
	if err := <-ended; err == nil {
		t.Error("the frozen transaction was committed")
	}
}
