// Command door measures how many transactions of an application a second add a job, or
// a hundred, beside an order of their own: through Pawl's functions in SQL, with River,
// with Graphile Worker's functions (after npm ci in the folder node), and with a plain
// insert of the same row.
//
// usage: go run ./door [-quick] [-pg URL] [-only SQLite|PostgreSQL] [-out FILE]
//
// There is no such door with SQLite: only PostgreSQL is measured (-pg or
// PAWL_TEST_POSTGRES).
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlrun/pawl/bench/measure"
)

const note = "A transaction inserts an order and its jobs, with a payload of about 150 bytes, over one connection, by pgx: begin, insert, jobs, commit. " +
	"All are on one server, in a database each, and take turns. The rate is the median of the rounds; the ratio is to the plain insert. " +
	"A plain insert writes the row of a job into a table with the columns and indexes of Pawl's, with the id from the program, and does nothing else: it checks nothing, " +
	"writes no audit line and wakes nobody. Pawl is `client/pawltx` as a role that may call the functions only, for a task of workers, beside a node that listens. " +
	"River is `InsertTx`, and `InsertManyTx` for a hundred; Graphile Worker is its functions `add_job` and `add_jobs`. No worker of any takes jobs."

func main() { measure.Main("Jobs in transactions", "bench-door", all, note) }

// adder adds jobs in a transaction.
type adder interface {
	open(ctx context.Context, at string) (database string, err error)
	add(ctx context.Context, tx pgx.Tx, first int64, n int) error
	close()
}

// payload is what every job carries.
type payload struct {
	Seq  int64  `json:"seq"`
	Text string `json:"text"`
}

const text = "a hundred and some characters, such as the address of a customer and the number of an order that was placed a moment ago by them"

func newPayload(seq int64) payload { return payload{seq, text} }

func all(ctx context.Context, r *measure.Report, p measure.Place, quick bool) error {
	if p.Postgres == "" {
		r.Line("There is no such door", "")
		return nil
	}
	most, rounds := 3*time.Second, 5
	if quick {
		most, rounds = 500*time.Millisecond, 3
	}
	names := []string{"plain insert", "Pawl", "River", "Graphile Worker"}
	adders := map[string]adder{"plain insert": &plain{}, "Pawl": &functions{}, "River": &peer{}, "Graphile Worker": &graphile{}}
	pools := map[string]*pgxpool.Pool{}
	for _, name := range slices.Clone(names) {
		at, clean, err := p.Database(ctx)
		if err != nil {
			return err
		}
		defer clean()
		if at, err = adders[name].open(ctx, at); errors.Is(err, errNoGraphile) {
			r.Say("%s is left out: %v", name, err)
			names = slices.DeleteFunc(names, func(other string) bool { return other == name })
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer adders[name].close()
		if pools[name], err = pgxpool.New(ctx, at+"&pool_max_conns=16"); err != nil {
			return err
		}
		defer pools[name].Close()
		if _, err := pools[name].Exec(ctx, `create table orders (id bigint primary key, made timestamptz not null default now())`); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, c := range []struct{ clients, jobs int }{{1, 1}, {8, 1}, {8, 100}} {
		rates := map[string][]float64{}
		for round := range rounds {
			r.Say("%d clients, %d jobs, round %d", c.clients, c.jobs, round+1)
			for i := range names {
				name := names[(i+round)%len(names)]
				rate, err := work(ctx, pools[name], adders[name], c.clients, c.jobs, most)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				rates[name] = append(rates[name], rate)
			}
		}
		base := median(rates["plain insert"])
		for _, name := range names {
			rate := median(rates[name])
			r.Line(fmt.Sprintf("%s, %d clients, %d in a transaction", name, c.clients, c.jobs), "%.0f jobs/s (%.2f)", rate, rate/base)
		}
	}
	return nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// number is that of the last order.
var number atomic.Int64 //nolint:gochecknoglobals // orders of all contenders

// work commits transactions for a while, and tells how many jobs a second that were.
func work(ctx context.Context, pool *pgxpool.Pool, a adder, clients, jobs int, most time.Duration) (float64, error) {
	var wg sync.WaitGroup
	var done atomic.Int64
	failed := make(chan error, clients)
	begun := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(begun) < most {
				first := number.Add(int64(jobs))
				err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, `insert into orders (id) values ($1)`, first); err != nil {
						return err
					}
					return a.add(ctx, tx, first, jobs)
				})
				if err != nil {
					failed <- err
					return
				}
				done.Add(int64(jobs))
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(done.Load()) / time.Since(begun).Seconds(), nil
	}
}
