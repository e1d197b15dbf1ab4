package workflow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/need/needtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// fakeSources makes the sources prices and rates, fetched an hour ago.
func (k *kit) fakeSources() {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		return needtest.Make(ctx, tx, tx.Now.Add(-time.Hour))
	})
}

func (k *kit) fetchPrices() {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error { return needtest.Fetch(ctx, tx, k.needs, "prices") })
}

// grownOld makes the last fetch of a source an hour old.
func (k *kit) grownOld(name string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update fakes set fetched = $2, asks = 0, asked = 0 where name = $1`, name, store.Millis(tx.Now.Add(-time.Hour)))
		return err
	})
}

// asks tells how often prices were asked to fetch, and by whom.
func (k *kit) asks() string {
	return strings.Join(k.words(`select asks || coalesce(' ' || asked_by, '') from fakes where name = 'prices'`), ",")
}

func (k *kit) stands(w workflowstore.Workflow, state run.State, issue run.Issue, says string) {
	k.t.Helper()
	if l := k.look(w.Name).Lane; l.State != state || l.Issue != issue || !strings.Contains(l.Sentence, says) {
		k.t.Errorf("it is %s (%s): %q, want %s (%s): %q", l.State, l.Issue, l.Sentence, state, issue, says)
	}
}

// shopNeeding orders when there are prices of ten minutes, and waits for twenty.
func shopNeeding() definition {
	d := orderDefinition()
	d.config.Needs = []client.Need{{Source: "prices", MaxAge: "10m", Wait: "20m"}}
	return d
}

// A consumer whose workflow needs a source that is too old does not run: the source is
// asked once, the workflow says what it waits for, and the end of the fetch wakes it.
func TestAWorkflowWaitsForItsSource(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		w := k.deploy("shop", "1", shopNeeding())
		told := k.notices()
		k.publish(w, "in", "a")
		until := k.work(w)
		if ran := k.ranSince(); len(ran) > 0 || !until.Equal(time.Now().Add(20*time.Minute)) {
			t.Errorf("%v ran; it looks again at %s", ran, until)
		}
		expect(t, "asked", k.asks(), "1 workflow shop")
		k.stands(w, run.Running, run.IssueWaitingFresh, "It waits for source prices, 1h old; at most 10m is allowed.")
		y, err := k.s.Why(t.Context(), lane.Viewer{}, "shop", time.Time{})
		if err != nil || y.Next != "It continues when source prices was fetched." || y.Do != "pawl why source prices" {
			t.Errorf("%q, %q (%v)", y.Next, y.Do, err)
		}
		gate := ""
		for _, g := range y.Gates {
			if g.Name == "fresh" && !g.Open {
				gate = g.Text
			}
		}
		expect(t, "gate", gate, "It needs source prices, 1h old; at most 10m is allowed.")
		k.publish(w, "in", "b") // which wakes it, and changes nothing
		k.work(w)
		expect(t, "asked", k.asks(), "1 workflow shop")
		armed := len(k.armed.specs)
		k.fetchPrices()
		if len(k.armed.specs) != armed+1 || !k.armed.specs[armed].RunAt.Equal(time.Now().Truncate(time.Millisecond)) {
			t.Errorf("armed %v", k.armed.specs[armed:])
		}
		k.settle(w)
		if diff := cmp.Diff([]string{"a", "b"}, k.desk.things()); diff != "" {
			t.Error(diff)
		}
		k.stands(w, run.Idle, run.IssueNone, "")
		if len(*told) > 0 {
			t.Errorf("people were told %v", *told)
		}
	})
}

// A wait that is over needs a person, once, and the source is asked again; the fetch
// mends it.
func TestAWorkflowThatWaitsTooLongNeedsAttention(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		w := k.deploy("shop", "1", shopNeeding())
		told := k.notices()
		k.publish(w, "in", "a")
		k.follow(w, 19*time.Minute)
		k.stands(w, run.Running, run.IssueWaitingFresh, "1h19m old")
		k.write(func(ctx context.Context, tx *store.Tx) error { // its fetch was cancelled
			_, err := tx.Exec(ctx, `update fakes set asked = 0`)
			return err
		})
		k.follow(w, 50*time.Minute)
		k.stands(w, run.NeedsAttention, run.IssueStale, "It waits for source prices, 2h9m old")
		expect(t, "asked", k.asks(), "2 workflow shop")
		expect(t, "do", k.look("shop").Do, "pawl run source prices")
		pause := func(at string) {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `update fakes set paused = `+at)
				return err
			})
		}
		pause("1") // and cannot be run
		expect(t, "do", k.look("shop").Do, "pawl resume source prices")
		pause("null")
		k.start("n2") // who takes over tells nothing again
		again := k.notices()
		k.follow(w, 30*time.Minute)
		expect(t, "told", append(*told, *again...), []string{"needs_attention stale_source"})
		k.fetchPrices()
		k.settle(w)
		expect(t, "told", *again, []string{"recovered "})
		if diff := cmp.Diff([]string{"a"}, k.desk.things()); diff != "" {
			t.Error(diff)
		}
	})
}

// Wherever the process dies, what waits is neither lost nor done twice.
func TestAWorkflowThatWaitsSurvivesCrashes(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		for _, place := range []string{"before wait", "waits"} {
			k.grownOld("prices")
			k.desk.clear()
			name := "shop-" + strings.ReplaceAll(place, " ", "-")
			w := k.deploy(name, "1", shopNeeding())
			k.publish(w, "in", "a", "b")
			if !k.crashAt(w, place, 1) {
				t.Errorf("nobody died at %s", place)
			}
			k.work(w)
			k.start("waiting-" + name)
			k.work(w)
			expect(t, place+": asked", k.asks(), "1 workflow "+name)
			k.stands(w, run.Running, run.IssueWaitingFresh, "prices")
			k.fetchPrices()
			k.start("fetched-" + name)
			k.settle(w)
			if diff := cmp.Diff([]string{"a", "b"}, k.desk.things()); diff != "" {
				t.Errorf("%s: %s", place, diff)
			}
		}
	})
}

// What has begun goes on with a source that grew old meanwhile.
func TestWhatHasBegunNeedsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		k.fetchPrices()
		k.writeThrough()
		w := k.deploy("shop", "1", shopNeeding())
		k.publish(w, "in", "a")
		if !k.crashAt(w, "begun", 1) {
			t.Error("nothing began")
		}
		k.grownOld("prices")
		k.work(w)
		if diff := cmp.Diff([]string{"a"}, k.desk.things()); diff != "" {
			t.Error(diff)
		}
	})
}

// An instant of a producer that waited for a source was not missed, whatever the
// definition says of those that were.
func TestAnInstantThatWaitedWasNotMissed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		var seen []string
		d := standing(Schedule{Cron: "0 * * * *", Missed: &client.Missed{Policy: "skip"}}, &seen)
		d.config.Needs = shopNeeding().config.Needs
		k.fetchPrices()
		w := k.deploy("late", "1", d)
		k.follow(w, 30*time.Minute)
		taken(&seen)
		k.follow(w, 45*time.Minute) // it waits since 01:00
		expect(t, "runs", taken(&seen), "")
		k.fetchPrices()
		k.start("n2")
		k.follow(w, time.Minute)
		expect(t, "runs", taken(&seen), "01 01:00")
		k.fetchPrices()
		pass(2 * time.Hour) // in which nobody is there
		k.fetchPrices()
		k.start("n3")
		k.follow(w, 30*time.Minute)
		expect(t, "runs after a gap", taken(&seen), "")
	})
}

// A workflow that has nothing to do any more waits for nothing.
func TestAWaitEndsWithItsReason(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		k.fetchPrices()
		w := k.deploy("shop", "1", shopNeeding())
		k.settle(w)
		k.grownOld("prices")
		k.publish(w, "in", "a")
		k.work(w)
		k.stands(w, run.Running, run.IssueWaitingFresh, "prices")
		k.pause("shop")
		k.work(w)
		k.stands(w, run.Stopped, run.IssuePaused, "")
		expect(t, "waits", k.words(`select count(*) || '' from needs where waits_since is not null`), "[0]")
		k.resume("shop")
		k.work(w)
		k.stands(w, run.Running, run.IssueWaitingFresh, "prices")
		k.deploy("shop", "2", orderDefinition())
		k.settle(w)
		k.stands(w, run.Idle, run.IssueNone, "")
		if diff := cmp.Diff([]string{"a"}, k.desk.things()); diff != "" {
			t.Error(diff)
		}
		expect(t, "needs", k.words(`select count(*) || '' from needs`), "[0]")
	})
}

// A script that needs a source which is not there is refused at its place.
func TestNeedsOfAScriptAreChecked(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		d := shopNeeding()
		d.config.Needs[0].Source = "price"
		_, err := k.apply("shop", "1", d, nil)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || len(e.Fields) != 1 || !strings.Contains(e.Fields[0].Message, `needs: there is no source "price"; Did you mean prices?`) || !strings.HasPrefix(e.Fields[0].Message, "w.ts:1:1") {
			t.Errorf("%+v", e)
		}
		d.config.Needs = []client.Need{{Source: "prices"}, {Source: "rates", MaxAge: "soon", Wait: "9d"}}
		_, err = k.apply("shop", "1", d, nil)
		if e, ok = errors.AsType[*pawl.Error](err); !ok || len(e.Fields) != 3 {
			t.Errorf("%+v", e)
		}
		denied := errors.New("denied")
		_, err = k.apply("shop", "1", shopNeeding(), func(d *Deploy) {
			d.Permit = func(c Config) error {
				expect(t, "needs", c.Needs[0].Source, "prices")
				return denied
			}
		})
		if !errors.Is(err, denied) {
			t.Errorf("%v", err)
		}
		w := k.deploy("shop", "1", shopNeeding())
		expect(t, "needs", k.words(`select source || ' ' || kind || ' ' || lane from needs`), []string{"prices workflow shop"})
		if err := k.remove(w.Name); err != nil {
			t.Fatal(err)
		}
		expect(t, "needs", k.words(`select count(*) || '' from needs`), "[0]")
	})
}
