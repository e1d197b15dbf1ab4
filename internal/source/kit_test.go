package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// kit is a service on a database, driven by hand: work is one claim of the
// source's job, and nothing happens but in it.
type kit struct {
	t     testing.TB
	db    *store.DB
	s     *Service
	fence store.Fence
	api   *upstream

	providers string // of a provider file; empty: none
	armed     armed
	fault     func(place string) error
	mu        sync.Mutex
	changes   []lane.Change // guarded by mu
	notices   []lane.Notice
	published []Row
	stopping  atomic.Bool
}

func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url, "")) })
}

// newKit makes a kit; the text is a provider file, in which HOST is the
// upstream's.
func newKit(t testing.TB, url, provider string) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, db: db, api: newUpstream(t), providers: provider}
	k.start("n1")
	return k
}

// start makes a new process of the kit, which takes the lanes over.
func (k *kit) start(node string) {
	k.t.Helper()
	taken, err := k.db.Take(k.t.Context(), node, store.Bucket{ID: k.fence.Bucket, Node: k.fence.Node, Epoch: k.fence.Epoch})
	if err != nil || len(taken) != 1 {
		k.t.Fatalf("take bucket: %v, %v", taken, err)
	}
	k.fence = store.Fence{Bucket: taken[0].ID, Node: node, Epoch: taken[0].Epoch}
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(client.Close)
	book := quota.NewBook(k.db, k.loadProviders(), client, nil)
	k.s, err = New(Options{
		DB: k.db, Ledger: ledger.New(ledger.Config{}), Fetcher: fetch.New(fetch.Options{Client: client, Book: book}), Book: book, Spool: k.t.TempDir(),
		Host: lane.Host{
			Observe: func(c lane.Change) { k.mu.Lock(); k.changes = append(k.changes, c); k.mu.Unlock() },
			Notify: func(_ context.Context, _ *store.Tx, n lane.Notice) error {
				k.notices = append(k.notices, n)
				return nil
			},
		},
		Publish: func(_ context.Context, _ *store.Tx, _, _, _ string, rows []Row) error {
			k.published = append(k.published, rows...)
			return nil
		},
		fault: func(place string) error {
			if k.fault == nil {
				return nil
			}
			return k.fault(place)
		},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.s.Attach(&k.armed)
}

func (k *kit) loadProviders() *quota.Providers {
	k.t.Helper()
	var files []string
	if k.providers != "" {
		file := filepath.Join(k.t.TempDir(), "provider.yaml")
		u, _ := url.Parse(k.api.URL)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(k.providers, "HOST", u.Host)), 0o600); err != nil {
			k.t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := quota.Load(files, nil, func(string) string { return "" })
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// Fence, Stopping and StillOwned make the kit a claim.
func (k *kit) Fence() store.Fence { return k.fence }
func (k *kit) Stopping() bool     { return k.stopping.Load() }
func (k *kit) StillOwned() error  { return nil }

// armed remembers what was armed.
type armed struct {
	mu   sync.Mutex
	jobs []store.JobSpec // guarded by mu
}

func (a *armed) EnqueueTx(_ context.Context, _ *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs = append(a.jobs, specs...)
	return make([]store.Job, len(specs)), nil
}

// define parses a definition in which URL is the upstream's.
func (k *kit) define(text string) spec.Definition {
	k.t.Helper()
	list, err := spec.Parse("s.yaml", []byte(strings.ReplaceAll(text, "URL", k.api.URL)))
	if err != nil {
		if e, ok := errors.AsType[*pawl.Error](err); ok {
			k.t.Fatalf("%v: %v", err, e.Fields)
		}
		k.t.Fatal(err)
	}
	return list[0]
}

// apply puts a definition in force and returns the source.
func (k *kit) apply(text string) sourcestore.Source {
	k.t.Helper()
	var out Applied
	d := k.define(text)
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = k.s.Apply(ctx, tx, d, "tester")
		return err
	})
	return out.Source
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

// work is one claim; it returns when to look again.
func (k *kit) work(src sourcestore.Source) time.Time {
	k.t.Helper()
	at, err := k.s.work(k.t.Context(), k, src.ID)
	if err != nil {
		k.t.Fatalf("work: %v", err)
	}
	k.checkRow(src.Name)
	return at
}

// checkRow holds that the row of a source says how it stands, and that it is
// found by it.
func (k *kit) checkRow(name string) {
	k.t.Helper()
	var v *view
	var found []sourcestore.Source
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		src, err := sourcestore.In(tx).SourceByName(ctx, name)
		if err != nil {
			return err
		}
		if v, err = k.s.loadFrom(ctx, tx, src); err != nil {
			return err
		}
		state := v.lane(sourcestore.SourceRun{}).State
		found, err = sourcestore.In(tx).FindSources(ctx, runstore.LaneFilter{State: string(state), Text: name}, "", 1)
		return err
	})
	if errors.Is(err, pawl.ErrNotFound) {
		return // it was deleted
	}
	if err != nil {
		k.t.Fatal(err)
	}
	if r := v.rest(); !r.SaidBy(v.known) || len(found) != 1 {
		k.t.Errorf("the row says %s (%s), and the source is %s (%+v); found %v", v.known.State, v.known.Cause, r.State, r.Attention, found)
	}
}

func (k *kit) look(name string) *view {
	k.t.Helper()
	v, err := k.s.load(k.t.Context(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return v
}

// wantStatus fails unless the newest run has the status.
func (k *kit) wantStatus(name string, want pawl.Status) *view {
	k.t.Helper()
	v := k.look(name)
	if v.row.Status != want {
		k.t.Fatalf("the newest run is %q (%s: %s), want %q", v.row.Status, v.row.ErrorCode, v.row.ErrorMessage, want)
	}
	return v
}

// change runs a statement, to move what is stored in time.
func (k *kit) change(sql string, args ...any) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

// column reads one column of a table, in order.
func (k *kit) column(sql string, args ...any) (out []string) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		out = nil
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var v string
			if err := rows.Scan(&v); err != nil {
				return err
			}
			out = append(out, v)
		}
		return rows.Err()
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// items are the ids in the table of the tests.
func (k *kit) items(name string) []string {
	k.t.Helper()
	return k.column(`select id from items where source_name = $1 order by id`, name)
}

// upstream is an API that holds items and shows them in pages, with faults on
// demand.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	ids      []string
	requests []string
	before   func(n int, w http.ResponseWriter, r *http.Request) bool // true: it answered
}

const pageSize = 3

func newUpstream(t testing.TB) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	u.fill(10)
	return u
}

func (u *upstream) fill(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = nil
	for i := range n {
		u.ids = append(u.ids, fmt.Sprintf("i%03d", i))
	}
}

func (u *upstream) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.ids...)
}

// on sets what happens before an answer; nil: nothing.
func (u *upstream) on(before func(n int, w http.ResponseWriter, r *http.Request) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.before = before
}

func (u *upstream) asked() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.requests)
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.requests = append(u.requests, r.URL.String())
	n, before, ids := len(u.requests), u.before, u.ids
	u.mu.Unlock()
	if before != nil && before(n, w, r) {
		return
	}
	q := r.URL.Query()
	size, from := pageSize, 0
	if v, err := strconv.Atoi(q.Get("limit")); err == nil {
		size = v
	}
	switch r.URL.Path {
	case "/pages":
		page, _ := strconv.Atoi(q.Get("page"))
		from = (page - 1) * size
	case "/offset":
		from, _ = strconv.Atoi(q.Get("offset"))
	case "/cursor", "/link", "/next":
		from, _ = strconv.Atoi(strings.TrimPrefix(q.Get("cursor"), "c"))
	default:
		size = len(ids)
	}
	to := min(from+size, len(ids))
	body := map[string]any{"items": []any{}, "more": to < len(ids)}
	var list []any
	for _, id := range ids[min(from, len(ids)):to] {
		list = append(list, map[string]any{"id": id, "n": len(list), "quote": map[string]any{"close": 1.5}})
	}
	if list != nil {
		body["items"] = list
	}
	if to < len(ids) {
		next := "c" + strconv.Itoa(to)
		body["cursor"] = next
		body["next"] = u.URL + r.URL.Path + "?cursor=" + next
		w.Header().Set("Link", "<"+u.URL+r.URL.Path+"?cursor="+next+`>; rel="next"`)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

const itemsBody = `
table: items
response:
  dataPath: items
  fields: [{source: id, target: id}, {source: n, target: n, type: integer}, {source: quote.close, target: close, type: number}]
write: {key: [id]}
`

func definition(name, path, extra string) string {
	return "kind: source\nname: " + name + "\nurl: URL" + path + itemsBody + extra
}

const byPage = "offsetPagination: {pageParam: page, limitParam: limit, limit: 3, hasMorePath: more}\n"

func pgtestBoth(t *testing.T, provider string, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url, provider)) })
}
