package workflow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// ..A-92, A-101, A-107..A-112, A-119, A-122..A-127, A-132..A-134,
// ..X-08, X-17, X-18, X-24, X-35, X-67..X-69, lessons 1-16: whatever
// happens to a workflow, in whatever order, once everything is healthy again
// every event that nobody skipped has its one effect, and nothing is left
// behind; it has a second one only if somebody gave his word that the first did
// not happen: a person, or the desk in answer to the call. What "whatever" is: see the actions of life; what must hold after
// every one of them and in the end: see check and checkEnd.
func TestEveryHistoryEndsWithOneEffectPerEvent(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { checkHistories(t, 40, false, emptyFiles(t)) })
	t.Run("postgres", func(t *testing.T) { // slower, and the rules are the same
		url := pgtest.URL(t)
		checkHistories(t, 10, false, func() string { return url })
	})
}

// So it is when the consumer has partitions, which versions of the script change.
func TestEveryHistoryOfPartitionsEndsWithOneEffectPerEvent(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { checkHistories(t, 40, true, emptyFiles(t)) })
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.URL(t)
		checkHistories(t, 10, true, func() string { return url })
	})
}

// emptyFiles makes databases in files of their own. They are copies of one,
// because making its tables takes longer than many a history.
func emptyFiles(t *testing.T) func() string {
	t.Helper()
	first := filepath.Join(t.TempDir(), "pawl.db")
	db, err := store.Open(t.Context(), "sqlite:"+first, store.Options{})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	empty, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		file := filepath.Join(t.TempDir(), "pawl.db")
		if err := os.WriteFile(file, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return "sqlite:" + file
	}
}

// checkHistories tries so many per cent of the cases that rapid is told to try.
// Each has a clock, a process and a workflow of its own.
func checkHistories(t *testing.T, percent int, parted bool, url func() string) {
	pgtest.Percent(t, percent)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		var ended any
		synctest.Test(t, func(t *testing.T) {
			defer func() { ended = recover() }() // for the goroutine of rapid
			k := newKitOn(t, url())
			k.t = &caseTB{TB: t, rt: rt}
			if rapid.Bool().Draw(rt, "each step by itself") {
				k.writeThrough()
			}
			live(rt, k, fmt.Sprintf("shop-%d", n), parted)
		})
		switch {
		case ended == nil:
		case ended == any(errCaseFailed): // the same words each time, or rapid takes it for another failure
			rt.Fatal("something that must hold does not; see the log")
		case fmt.Sprintf("%T", ended) == "rapid.invalidData": // how rapid gives a case up
			panic(ended)
		default:
			rt.Fatalf("panic: %v", ended)
		}
	})
}

// errCaseFailed ends a case that the kit found wrong.
var errCaseFailed = errors.New("the case failed")

// caseTB makes what the kit finds wrong a failure of one case, so that rapid
// looks for a shorter one.
type caseTB struct {
	testing.TB
	rt     *rapid.T
	failed bool
}

func (c *caseTB) Helper()           { c.rt.Helper() }
func (c *caseTB) Failed() bool      { return c.failed }
func (c *caseTB) Error(args ...any) { c.failed = true; c.rt.Log(args...) }
func (c *caseTB) Fatal(args ...any) { c.rt.Log(args...); panic(errCaseFailed) }
func (c *caseTB) Errorf(format string, args ...any) {
	c.failed = true
	c.rt.Logf(format, args...)
}

func (c *caseTB) Fatalf(format string, args ...any) {
	c.rt.Logf(format, args...)
	panic(errCaseFailed)
}

// live lives one history: things happen, then all is made well.
func live(rt *rapid.T, k *kit, name string, parted bool) {
	l := newLife(rt, k, name, parted)
	actions := l.actions()
	for range rapid.IntRange(4, 24).Draw(rt, "steps") {
		name := rapid.SampledFrom(actionNames).Draw(rt, "action")
		actions[name]()
		l.check(name)
	}
	l.heal()
	l.checkEnd()
}
