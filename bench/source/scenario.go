package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// rates are rows per second.
type rates struct{ raw, rows, again float64 }

// rowsPerSecond fetches pages from end to end, by turns with the raw limit.
func rowsPerSecond(ctx context.Context, p measure.Place, mode string, pages, rounds int) (rates, error) {
	server := servePages(pages, pageRows)
	defer server.Close()
	var raw, rows, again []time.Duration
	d, err := define("ticks", "ticks", server.URL, mode)
	if err != nil {
		return rates{}, err
	}
	for range rounds {
		took, err := rawLimit(ctx, p, d, pages)
		if err != nil {
			return rates{}, fmt.Errorf("raw limit: %w", err)
		}
		raw = append(raw, took)
		first, second, err := fetchTwice(ctx, p, d, pages)
		if err != nil {
			return rates{}, err
		}
		rows, again = append(rows, first), append(again, second)
	}
	rate := func(list []time.Duration) float64 { return float64(pages*pageRows) / measure.At(list, 0.5).Seconds() }
	return rates{rate(raw), rate(rows), rate(again)}, nil
}

// fetchTwice measures from the request of a run to its commit: all rows new,
// and all rows there.
func fetchTwice(ctx context.Context, p measure.Place, d spec.Definition, pages int) (first, second time.Duration, err error) {
	h, err := open(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer h.close()
	if err := h.apply(ctx, d); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	h.run(ctx)
	if err := h.await(ctx, &h.committed, 1); err != nil {
		return 0, 0, err
	}
	first = time.Since(begun)
	begun = time.Now()
	if err := h.runNow(ctx, "ticks"); err != nil {
		return 0, 0, err
	}
	if err := h.await(ctx, &h.committed, 2); err != nil {
		return 0, 0, err
	}
	second = time.Since(begun)
	return first, second, h.mustHave(ctx, "ticks", pages*pageRows)
}

// mustHave voids a measurement that lost rows or has them twice.
func (h *house) mustHave(ctx context.Context, table string, want int) error {
	var got int
	err := h.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from "`+table+`"`).Scan(&got)
	})
	if err == nil && got != want {
		err = fmt.Errorf("the table has %d rows and should have %d", got, want)
	}
	return err
}

// large is what one large answer needed.
type large struct {
	rows int
	peak int64 // bytes above idle
	took time.Duration
}

func largeAnswer(ctx context.Context, p measure.Place, size int) (large, error) {
	h, err := open(ctx, p)
	if err != nil {
		return large{}, err
	}
	defer h.close()
	server, rows := serveOne(size)
	defer server.Close()
	d, err := define("large", "large", server.URL, "append")
	if err != nil {
		return large{}, err
	}
	debug.FreeOSMemory() // what earlier scenarios left
	idle, err := measure.ResidentSize()
	if err != nil {
		return large{}, err
	}
	end := measure.Peak()
	begun := time.Now()
	if err := h.apply(ctx, d); err != nil {
		return large{}, err
	}
	h.run(ctx)
	err = h.await(ctx, &h.committed, 1)
	out := large{rows: rows, took: time.Since(begun), peak: end() - idle}
	if err != nil {
		return out, err
	}
	return out, h.mustHave(ctx, "large", rows)
}

// quiet is what sources cost that are not due.
type quiet struct {
	apply, look, idle time.Duration
	ran               []time.Duration
	transactions      int64
	memory            int64
}

// notDue makes sources that have just succeeded, lets each find out that it is
// not due, idles, and runs one again and again.
func notDue(ctx context.Context, p measure.Place, n, asks int, idle time.Duration) (q quiet, err error) {
	h, err := open(ctx, p)
	if err != nil {
		return q, err
	}
	defer h.close()
	server := servePages(1, 1)
	defer server.Close()
	begun := time.Now()
	if err := h.applyDone(ctx, server.URL, n); err != nil {
		return q, err
	}
	q.apply = time.Since(begun) / time.Duration(n)
	begun = time.Now()
	h.run(ctx)
	if err := h.await(ctx, &h.looks, int64(n)); err != nil {
		return q, err
	}
	q.look = time.Since(begun) / time.Duration(n)
	time.Sleep(2 * time.Second)
	if err := q.whileIdle(ctx, p, h.at, idle); err != nil {
		return q, err
	}
	for i := range asks {
		time.Sleep(10 * time.Millisecond)
		begun := time.Now()
		if err := h.runNow(ctx, sourceName(0)); err != nil {
			return q, err
		}
		if err := h.await(ctx, &h.committed, int64(i+1)); err != nil {
			return q, err
		}
		q.ran = append(q.ran, time.Since(begun))
		if err := h.await(ctx, &h.looks, int64(n+i+1)); err != nil { // it is armed again
			return q, err
		}
	}
	return q, nil
}

func (q *quiet) whileIdle(ctx context.Context, p measure.Place, at string, length time.Duration) (err error) {
	runtime.GC()
	p.Rest()
	transactions, err := p.Transactions(ctx, at)
	if err != nil {
		return err
	}
	before := measure.ProcessorTime()
	time.Sleep(length)
	q.idle = measure.ProcessorTime() - before
	after, err := p.Transactions(ctx, at)
	if err != nil {
		return err
	}
	q.transactions = after - transactions
	q.memory, err = measure.ResidentSize()
	return err
}

func sourceName(i int) string { return fmt.Sprintf("bench-%06d", i) }

// applyDone applies sources and notes that each has just been fetched.
func (h *house) applyDone(ctx context.Context, url string, n int) error {
	d, err := define("bench", "ticks", url, "append")
	if err != nil {
		return err
	}
	for from := 0; from < n; from += 200 {
		err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			for i := from; i < min(from+200, n); i++ {
				d.Name = sourceName(i)
				applied, err := h.sources.Apply(ctx, tx, d, "bench")
				if err != nil {
					return err
				}
				if err := sourcestore.In(tx).SourceSucceeded(ctx, applied.Source.ID, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
