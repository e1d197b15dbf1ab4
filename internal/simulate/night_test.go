package simulate

import (
	"math/rand/v2"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// sleep is an outage of minutes: all nodes die, and come back when several instants
// of the schedule have passed.
func (c *calendar) sleep(r *rand.Rand) {
	if len(c.w.alive()) < len(c.w.nodes) || !c.night[0].IsZero() {
		return
	}
	c.night[0] = time.Now()
	lasts := 3*time.Minute + time.Duration(r.Int64N(int64(7*time.Minute)))
	for i, l := range c.w.alive() {
		l.kill()
		c.w.reborn(l.n, lasts+time.Duration(i)*100*time.Millisecond)
	}
	pass(lasts)
	c.night[1] = time.Now()
	pass(8 * time.Second) // what was missed begins
	c.w.note("everybody was away for %v", lasts)
}

// checkMissed holds what became of the instants of which nobody was there; those of
// the last minute count as late only.
func (c *calendar) checkMissed(begun map[string]int) {
	w := c.w
	if c.night[1].IsZero() || c.edited || w.halts || w.pruned || w.skew > 0 {
		return
	}
	ran, missed := 0, 0
	stopped := []string{} // the one of now may end one of them
	for at := c.night[0].Add(15 * time.Second).Truncate(c.step).Add(c.step); at.Before(c.night[1].Add(-61 * time.Second)); at = at.Add(c.step) {
		missed++
		if key := pawl.SlotKey(c.id, at.UTC()); begun[key] > 0 {
			ran++
			if run := w.graph.runs[key+"/1"]; run != nil && run.canceled {
				stopped = append(stopped, key)
			}
		}
	}
	switch {
	case (c.missed == "" || c.missed == "skip") && ran > 0:
		w.fail("%d of %d slots ran that nobody was there for, and none of them should", ran, missed)
	case c.missed == "all" && len(stopped) > 1 && !c.cancels:
		w.fail("%v were missed and are to run, and were stopped", stopped)
	case c.missed == "last" && ran > 1:
		w.fail("%d of %d slots ran that nobody was there for, and only the last one should", ran, missed)
	}
}
