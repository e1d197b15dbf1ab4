package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
)

// What a run of the measured consumer needs at least.
const (
	commitsPerRun = 3 // the call in flight, its result, the commit
	phasesPerRun  = 3
)

type noHost struct{}

func (noHost) Call(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage("[]"), nil
}

// limits are what the disk and the sandbox can do by themselves.
type limits struct {
	commits, phases float64 // per second, 8 at once
	serial          float64 // runs per second of one lane, which does one thing at a time
}

// both is the tighter limit of runs per second while all cores are busy.
func (l limits) both() float64 { return min(l.commits/commitsPerRun, l.phases/phasesPerRun) }

// rawLimits measures limits on a new database.
func rawLimits(ctx context.Context, pg, dir string, length time.Duration) (l limits, err error) {
	h, err := open(ctx, pg, dir)
	if err != nil {
		return l, err
	}
	defer h.close()
	commit := func(n int) error {
		return h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into write_probe (id, at) values ($1, 1) on conflict (id) do update set at = write_probe.at + 1`, int64(1000+n))
			return err
		})
	}
	if l.commits, err = perSecond(length, 8, commit); err != nil {
		return l, err
	}
	program, err := h.pool.Compile(ctx, "w.ts", source("raw"))
	if err != nil {
		return l, err
	}
	phase := func(int) error {
		_, err := h.pool.Run(ctx, script.Request{Program: program, Handler: "consumers.take.prepare", Now: time.Now()}, noHost{}, script.Limits{})
		return err
	}
	if _, err = perSecond(length/3, 8, phase); err != nil { // warm-up
		return l, err
	}
	if l.phases, err = perSecond(length, 8, phase); err != nil {
		return l, err
	}
	l.serial, err = perSecond(length, 1, func(n int) error { return inTurns(n, phase, commit) })
	return l, err
}

// inTurns does the phases and commits of one run, one after the other.
func inTurns(n int, phase, commit func(int) error) error {
	for i := range max(phasesPerRun, commitsPerRun) {
		if i < phasesPerRun {
			if err := phase(n); err != nil {
				return err
			}
		}
		if i < commitsPerRun {
			if err := commit(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// perSecond does something in so many goroutines for a while.
func perSecond(length time.Duration, lanes int, do func(n int) error) (float64, error) {
	var count atomic.Int64
	var failed atomic.Pointer[error]
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	begun := time.Now()
	for n := range lanes {
		wg.Go(func() {
			for time.Now().Before(end) {
				if err := do(n); err != nil {
					failed.Store(&err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(count.Load()) / time.Since(begun).Seconds(), nil
}

// drainRuns measures runs per second over events that are there already,
// and what a run costs. A profile, if one is wanted, is of nothing else.
func drainRuns(ctx context.Context, pg, dir string, lanes, per int, profile string) (rate float64, cost string, err error) {
	h, err := open(ctx, pg, dir)
	if err != nil {
		return 0, "", err
	}
	defer h.close()
	if err := h.deployAll(ctx, lanes); err != nil {
		return 0, "", err
	}
	h.run(ctx)
	if err := h.await(ctx, int64(lanes)); err != nil { // the first prepare of each
		return 0, "", err
	}
	before := h.committed.Load()
	for i := range lanes {
		if err := h.publish(ctx, laneName(i), 2, per); err != nil {
			return 0, "", err
		}
	}
	stored, err := h.stored(ctx)
	if err != nil {
		return 0, "", err
	}
	server, n := measure.Postmaster(ctx, pg), lanes*(per+1)
	stop, err := startProfile(profile, lanes)
	if err != nil {
		return 0, "", err
	}
	defer stop()
	begun, used := time.Now(), processorUse(server)
	for i := range lanes { // one more event wakes the lane
		if err := h.publish(ctx, laneName(i), 1, 1); err != nil {
			return 0, "", err
		}
	}
	if err := h.await(ctx, before+int64(n)); err != nil {
		return 0, "", err
	}
	stop()
	now, err := h.stored(ctx)
	if err != nil {
		return 0, "", err
	}
	took, cost := time.Since(begun), processorUse(server).minus(used).per(n)
	if now-stored != n {
		return 0, "", fmt.Errorf("the database has %d committed runs, which should be %d", now-stored, n)
	}
	return float64(n) / took.Seconds(), cost, nil
}

func laneName(i int) string { return "bench-" + strconv.Itoa(i) }

func (h *house) deployAll(ctx context.Context, lanes int) error {
	for i := range lanes {
		if err := h.deploy(ctx, source(laneName(i))); err != nil {
			return err
		}
	}
	return nil
}

// stages are the ways of an event to its prepare: until its publish is on the
// disk, until a worker has the lane's job, and until the lane has looked, chosen
// and prepared the run.
type stages struct {
	publish, claim, look, all []time.Duration
}

func (s *stages) add(asked, published, claimed, began time.Time) {
	s.publish = append(s.publish, published.Sub(asked))
	s.claim = append(s.claim, max(0, claimed.Sub(published)))
	s.look = append(s.look, began.Sub(claimed))
	s.all = append(s.all, began.Sub(asked))
}

// quantiles is the middle of a stage and what 99 of 100 do not reach.
func quantiles(list []time.Duration) (p50, p99 time.Duration) {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2], list[len(list)*99/100]
}

// publishToPrepare measures how long an idle lane takes from the beginning of a
// publish to the start of prepare.
func publishToPrepare(ctx context.Context, pg, dir string, samples int) (s stages, err error) {
	h, err := open(ctx, pg, dir)
	if err != nil {
		return s, err
	}
	defer h.close()
	if err := h.deployAll(ctx, 1); err != nil {
		return s, err
	}
	h.run(ctx)
	for n := range samples + 20 {
		if err := h.await(ctx, int64(n+1)); err != nil {
			return s, err
		}
		time.Sleep(15 * time.Millisecond)
		began := make(chan time.Time, 4)
		fn := func() { began <- time.Now() }
		h.onPrepare.Store(&fn)
		asked := time.Now()
		if err := h.publish(ctx, laneName(0), n+1, 1); err != nil {
			return s, err
		}
		published := time.Now()
		if at := <-began; n >= 20 {
			s.add(asked, published, time.Unix(0, h.claimed.Load()), at)
		}
	}
	return s, nil
}

// pendingCost measures a run beside few and beside many pending events.
func pendingCost(ctx context.Context, pg, dir string, runs, pending int) (few, many time.Duration, err error) {
	measure := func(waiting int) (time.Duration, error) {
		h, err := open(ctx, pg, dir)
		if err != nil {
			return 0, err
		}
		defer h.close()
		if err := h.deployAll(ctx, 1); err != nil {
			return 0, err
		}
		if err := h.publish(ctx, laneName(0), 0, waiting+runs+20); err != nil {
			return 0, err
		}
		h.run(ctx)
		if err := h.await(ctx, 20); err != nil {
			return 0, err
		}
		begun := time.Now()
		if err := h.await(ctx, int64(20+runs)); err != nil {
			return 0, err
		}
		return time.Since(begun) / time.Duration(runs), nil
	}
	if few, err = measure(100); err != nil {
		return 0, 0, err
	}
	many, err = measure(pending)
	return few, many, err
}

// idleCost measures memory and processor time of idle workflows.
func idleCost(ctx context.Context, pg, dir string, lanes int, profile string) (memory int64, cpu time.Duration, err error) {
	h, err := open(ctx, pg, dir)
	if err != nil {
		return 0, 0, err
	}
	defer h.close()
	for i := range lanes {
		if err := h.deploy(ctx, idleSource(laneName(i))); err != nil {
			return 0, 0, err
		}
	}
	h.run(ctx)
	if err := h.await(ctx, int64(2*lanes)); err != nil { // producer and consumer of each
		return 0, 0, err
	}
	time.Sleep(2 * time.Second)
	runtime.GC()
	before := processorTime()
	time.Sleep(10 * time.Second)
	cpu = processorTime() - before
	if memory, err = residentSize(); err != nil || profile == "" {
		return memory, cpu, err
	}
	f, err := os.Create(profile)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close() //nolint:errcheck // WriteHeapProfile has told
	return memory, cpu, pprof.WriteHeapProfile(f)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func residentSize() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm is strange")
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// coldPhase measures the first phase of a program in a new worker, its start
// included, and the ones after it.
func coldPhase(ctx context.Context) (cold, warm time.Duration, err error) {
	var first, later []time.Duration
	for range 15 {
		pool, err := script.NewPool(script.Config{Workers: 1})
		if err != nil {
			return 0, 0, err
		}
		program, err := script.Compile("w.ts", source("cold"))
		if err != nil {
			return 0, 0, err
		}
		for n := range 20 {
			begun := time.Now()
			if _, err := pool.Run(ctx, script.Request{Program: program, Handler: "consumers.take.prepare", Now: begun}, noHost{}, script.Limits{}); err != nil {
				return 0, 0, err
			}
			if took := time.Since(begun); n == 0 {
				first = append(first, took)
			} else {
				later = append(later, took)
			}
			time.Sleep(2 * time.Millisecond)
		}
		pool.Close()
	}
	slices.Sort(first)
	slices.Sort(later)
	return first[len(first)/2], later[len(later)/2], nil
}
