package source

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// PostgreSQL is restarted four times while a source fetches, each
// time a page further, briefly and for longer than the lease. Nothing crashed
// and nothing failed: no failure is spent, the source is not halted, and it goes
// on where it was.
func TestPostgresGoesAwayDuringAFetch(t *testing.T) {
	server := pgtest.NewServer(t)
	k := newKit(t, server.URL(), "kind: provider\ndomain: HOST\nlimit: 1000\nperiod: 1h\n")
	k.api.fill(30)
	q, err := queue.New(queue.Config{
		DB: k.db, Node: store.Node{ID: store.NewID(), Share: true}, Lease: 3 * time.Second, Workers: 2, Pools: map[string]int{PoolName: 2}, Drain: time.Millisecond,
		Tasks: k.s.Tasks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	k.s.Attach(q)
	var mu sync.Mutex
	var pages []string
	var away sync.WaitGroup
	gone := map[string]bool{}
	k.api.on(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		page := r.URL.Query().Get("page")
		pages = append(pages, page)
		if gone[page] || !slices.Contains([]string{"2", "4", "6", "8"}, page) {
			return false
		}
		gone[page] = true
		away.Wait()
		server.Kill()
		if page == "6" { // and now how it failed cannot be written
			http.Error(w, "down", http.StatusBadGateway)
		}
		away.Go(func() {
			if page == "4" { // until the lease is lost
				eventually(t, "the queue says that it cannot work", func() bool { return q.Health() != nil })
			}
			server.Start()
		})
		return page == "6"
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	defer func() { stop(); <-done }()
	k.apply(definition("s", "/pages", byPage))
	newest := func() (status pawl.Status) {
		_ = k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error { // it may be away
			r, err := runstore.In(tx).NewestRun(ctx, pawl.KindSource, "s")
			status = r.Status
			return err
		})
		return status
	}
	eventually(t, "the fetch is committed", func() bool { return newest() == pawl.StatusCommitted })
	away.Wait()
	if got := k.items("s"); !slices.Equal(got, k.api.all()) {
		t.Errorf("the table holds %v", got)
	}
	v := k.look("s")
	if v.retry.Count != 0 || v.retry.Crashes != 0 {
		t.Errorf("%d failures and %d crashes are counted", v.retry.Count, v.retry.Crashes)
	}
	if bad := k.column(`select status || ' ' || coalesce(error_code, '') from runs where status <> 'committed' and coalesce(error_code, '') <> 'interrupted'`); len(bad) != 0 {
		t.Errorf("the history tells of %v", bad)
	}
	if len(gone) != 4 {
		t.Fatalf("only %v", gone)
	}
	highest := 0
	for _, text := range pages {
		page, err := strconv.Atoi(text)
		if err != nil || page < highest-1 { // the page in hand is lost, and the one after it was asked for already
			t.Errorf("it went back further than it had to: %v", pages)
			break
		}
		highest = max(highest, page)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit, tick := time.After(90*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-limit:
			t.Errorf("it does not come to be that %s", what)
			return
		case <-tick.C:
		}
	}
}
