package workflow

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// A-21..A-23, A-33: the patterns that scripts are written in, each with what
// wakes it.
func TestPatterns(t *testing.T) {
	hold(t,
		behaviour{"first in first out", patternFIFO},
		behaviour{"correlation over two topics", patternCorrelation},
		behaviour{"a time window", patternTimeWindow},
		behaviour{"a batch or a timeout", patternBatchOrTimeout},
		behaviour{"a daily digest", patternDailyDigest},
		behaviour{"a filter that nothing meets", patternFilter},
	)
}

// taken are the events that the runs of a consumer took, a list for each run
// that took any.
func (k *kit) taken(w workflowstore.Workflow, consumer string) (list []string) {
	k.t.Helper()
	for _, r := range k.runs(w) {
		var p Prepared
		if r.Handler != consumer || json.Unmarshal(r.PrepareResult, &p) != nil || p.Reserved() == 0 {
			continue
		}
		var ids []string
		for _, res := range p.Reservations {
			ids = append(ids, res.IDs...)
		}
		list = append(list, r.Trigger+": "+strings.Join(ids, " "))
	}
	return list
}

// Every event in its order, one a run, each because it is there.
func patternFIFO(t *testing.T, k *kit) {
	w := k.deploy("fifo", "1", consuming(takeOne("in")))
	k.work(w)
	k.publish(w, "in", "a", "b", "c")
	k.work(w)
	expect(t, "taken", k.taken(w, "take"), []string{"event: a", "event: b", "event: c"})
}

// Nothing until both halves are there; the second one wakes it.
func patternCorrelation(t *testing.T, k *kit) {
	w := k.deploy("correlation", "1", consuming(nil).consumer("match", func(c *goCtx, _ []json.RawMessage) any {
		paid := c.peek("paid")
		for _, id := range c.peek("ordered") {
			if slices.Contains(paid, id) {
				return map[string]any{"data": id, "reservations": []any{
					map[string]any{"topic": "ordered", "ids": []string{id}}, map[string]any{"topic": "paid", "ids": []string{id}},
				}}
			}
		}
		return take("")
	}, "ordered", "paid").handler("consumers.take.prepare", takeOne("in")))
	k.publish(w, "ordered", "1", "2")
	k.publish(w, "paid", "3")
	k.follow(w, 24*time.Hour)
	expect(t, "taken without a match", k.taken(w, "match"), []string{})
	k.publish(w, "paid", "2")
	k.work(w)
	expect(t, "taken", k.taken(w, "match"), []string{"event: 2 2"})
	expect(t, "left", k.statuses(w, "ordered")["1"], eventstore.EventPending)
}

// Before nine it only asks to be woken; at nine it takes what there is.
func patternTimeWindow(t *testing.T, k *kit) {
	w := k.deploy("window", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		if opens := c.now.Truncate(24 * time.Hour).Add(9 * time.Hour); c.now.Before(opens) {
			return wakeAt(take("in"), opens)
		}
		return take("in", c.peek("in")...)
	}))
	pass(7 * time.Hour)
	k.publish(w, "in", "a")
	k.work(w)
	pass(time.Hour)
	k.publish(w, "in", "b")
	k.follow(w, 59*time.Minute)
	expect(t, "taken before nine", k.taken(w, "take"), []string{})
	k.follow(w, time.Minute)
	expect(t, "taken", k.taken(w, "take"), []string{"wake: a b"})
	expect(t, "time", k.lastRun(w).StartedAt.UTC().Format("15:04"), "09:00")
}

// Three at once, or what there is after ten minutes.
func patternBatchOrTimeout(t *testing.T, k *kit) {
	w := k.deploy("batch", "1", consuming(func(c *goCtx, state []json.RawMessage) any {
		ids := c.peek("in")
		var since struct{ Since time.Time }
		if len(state) > 0 {
			_ = json.Unmarshal(state[0], &since) // the zero time will do
		}
		late := !since.Since.IsZero() && !c.now.Before(since.Since.Add(10*time.Minute))
		if len(ids) == 0 || len(ids) < 3 && !late {
			out := take("in")
			if len(ids) > 0 {
				wakeAt(out, c.now.Add(10*time.Minute))
				out["data"] = c.now
			}
			return out
		}
		return take("in", ids...)
	}).handler("consumers.take.next", func(_ *goCtx, args []json.RawMessage) any {
		if text, ok := dataOf(args[0]).(string); ok {
			return map[string]string{"since": text}
		}
		return map[string]any{}
	}))
	k.publish(w, "in", "a", "b", "c")
	k.work(w)
	k.publish(w, "in", "d")
	k.follow(w, 10*time.Minute)
	expect(t, "taken", k.taken(w, "take"), []string{"event: a b c", "wake: d"})
}

// it takes what there is and asks for tomorrow; tomorrow it wakes even
// though nothing came, and the day after it takes what came.
func patternDailyDigest(t *testing.T, k *kit) {
	w := k.deploy("digest", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		next := c.now.Truncate(24 * time.Hour).Add(24 * time.Hour)
		if c.now.Hour() != 0 {
			return wakeAt(take("in"), next)
		}
		return wakeAt(take("in", c.peek("in")...), next)
	}))
	k.publish(w, "in", "a")
	k.follow(w, 36*time.Hour) // noon of the second day
	k.publish(w, "in", "b")
	k.publish(w, "in", "c")
	k.follow(w, 12*time.Hour)
	expect(t, "causes", k.triggers(w, "take"), []string{"event", "wake", "event", "wake"})
	expect(t, "taken", k.taken(w, "take"), []string{"event: a", "wake: b c"})
}

// however often somebody looks, a consumer that took nothing is not
// asked again for what it has seen.
func patternFilter(t *testing.T, k *kit) {
	w := k.deploy("filter", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		for _, id := range c.peek("in") {
			if strings.HasPrefix(id, "good") {
				return take("in", id)
			}
		}
		return take("in")
	}))
	k.publish(w, "in", "bad 1", "bad 2")
	k.work(w)
	k.ranSince()
	for range 72 {
		if until := k.work(w); !until.IsZero() {
			t.Fatalf("it wants to be woken at %v", until)
		}
		pass(time.Hour)
	}
	expect(t, "runs in three days", len(k.ranSince()), 0)
	k.publish(w, "in", "good")
	k.work(w)
	expect(t, "taken", k.taken(w, "take"), []string{"event: good"})
	expect(t, "left", k.statuses(w, "in")["bad 1"], eventstore.EventPending)
}
