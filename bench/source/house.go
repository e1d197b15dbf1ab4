package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// house is a server without its HTTP.
type house struct {
	at      string // URL of the database
	db      *store.DB
	client  *outbound.Client
	sources *source.Service
	queue   *queue.Queue

	committed, failed, looks atomic.Int64
	why                      atomic.Pointer[string] // of the last failure

	stop  func()
	clean []func()
}

// open makes a house on a new database.
func open(ctx context.Context, p measure.Place) (h *house, err error) {
	h = &house{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	at, clean, err := p.Database(ctx)
	if err != nil {
		return h, err
	}
	h.at, h.clean = at, append(h.clean, clean)
	spool, clean, err := p.Folder()
	if err != nil {
		return h, err
	}
	h.clean = append(h.clean, clean)
	if h.db, err = store.Open(ctx, at, store.Options{}); err != nil {
		return h, err
	}
	if h.client, err = outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}); err != nil {
		return h, err
	}
	log := slog.New(slog.DiscardHandler)
	book := quota.NewBook(h.db, nil, h.client, log)
	h.sources, err = source.New(source.Options{
		DB: h.db, Ledger: ledger.New(ledger.Config{Observe: h.observe}), Book: book, Log: log, Spool: spool,
		Fetcher: fetch.New(fetch.Options{Client: h.client, Book: book, Log: log}),
	})
	if err != nil {
		return h, err
	}
	h.queue, err = queue.New(queue.Config{
		DB: h.db, Node: store.Node{ID: store.NewID(), Name: "bench", Share: true}, Workers: 8, Pools: map[string]int{source.PoolName: 10},
		Tasks: h.sources.Tasks(),
		Observe: func(e queue.Event) {
			if e.What == "snoozed" {
				h.looks.Add(1)
			}
		},
	})
	if err != nil {
		return h, err
	}
	h.sources.Attach(h.queue)
	return h, nil
}

func (h *house) observe(e ledger.Event) {
	switch {
	case e.What == ledger.Committed:
		h.committed.Add(1)
	case e.Run.ErrorMessage != "":
		h.failed.Add(1)
		h.why.Store(&e.Run.ErrorMessage)
	}
}

// run starts the queue.
func (h *house) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.queue.Run(ctx) })
	h.stop = func() { cancel(); wg.Wait() }
}

func (h *house) close() {
	if h.stop != nil {
		h.stop()
	}
	if h.client != nil {
		h.client.Close()
	}
	if h.db != nil {
		_ = h.db.Close()
	}
	for _, clean := range h.clean {
		clean()
	}
}

// define reads the definition of a source of the measured shape.
func define(name, table, url, mode string) (spec.Definition, error) {
	list, err := spec.Parse("bench.yaml", fmt.Appendf(nil, `
kind: source
name: %s
url: %s
table: %s
schedule: daily
execution: {timeout: 1800}
response:
  dataPath: data
  fields:
    - {source: id, target: id, type: integer}
    - {source: symbol, target: symbol}
    - {source: quote.price, target: price, type: number}
    - {source: open, target: open, type: boolean}
    - {source: at, target: at, type: timestamp}
    - {source: note, target: note}
write: {mode: %s, key: [id]}
offsetPagination: {pageParam: page, limitParam: limit, limit: 1000, hasMorePath: hasMore}
`, name, url, table, mode))
	if err != nil {
		return spec.Definition{}, err
	}
	return list[0], nil
}

func (h *house) apply(ctx context.Context, d spec.Definition) error {
	return h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := h.sources.Apply(ctx, tx, d, "bench")
		return err
	})
}

func (h *house) runNow(ctx context.Context, name string) error {
	return h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return h.sources.RunNow(ctx, tx, name, "bench") })
}

// await waits until that many were counted.
func (h *house) await(ctx context.Context, what *atomic.Int64, n int64) error {
	limit := time.Now().Add(20 * time.Minute)
	for what.Load() < n {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case h.failed.Load() > 0:
			return fmt.Errorf("a fetch failed: %s", *h.why.Load())
		case time.Now().After(limit):
			return fmt.Errorf("only %d of %d in twenty minutes", what.Load(), n)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
