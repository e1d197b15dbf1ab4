package workflow

import (
	"encoding/json"
	"testing"
	"time"
)

// a schedule that is edited while its producer runs is not overwritten by
// the run that began with the old one: the producer runs at once, and then as
// the new schedule says.
func TestAScheduleThatIsEditedDuringARunStays(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		ran := []time.Duration{}
		begun := time.Now()
		every := func(interval string, during func()) definition {
			return consuming(takeOne("in")).producer("p", Schedule{Interval: interval}, func(*goCtx, []json.RawMessage) any {
				ran = append(ran, time.Since(begun).Round(time.Second))
				during()
				return nothing{}
			})
		}
		edited := every("2s", func() {})
		w := k.deploy("shop", "1", every("24h", func() { k.deploy("shop", "2", edited) }))
		k.follow(w, 4*time.Second)
		expect(t, "the producer ran after", ran, []time.Duration{0, 0, 2 * time.Second, 4 * time.Second})
	})
}

// a consumer that gets other topics while it runs looks at once with
// these, whatever the run that began with the old ones returns; one whose topics
// stay wakes when it asked to.
func TestASubscriptionThatIsEditedDuringARunStays(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.writeThrough()
		for _, c := range []struct {
			name   string
			topics []string
			wakes  time.Duration
		}{{"other-topics", []string{"in", "more"}, 0}, {"same-topics", []string{"in"}, time.Hour}} {
			asleep := func(then func()) goHandler {
				return func(g *goCtx, _ []json.RawMessage) any {
					then()
					return wakeAt(take("in"), g.now.Add(time.Hour))
				}
			}
			edited := definition{handlers: map[string]goHandler{}}.consumer("take", asleep(func() {}), c.topics...)
			w := k.deploy(c.name, "1", definition{handlers: map[string]goHandler{}}.consumer("take", func(g *goCtx, args []json.RawMessage) any {
				k.deploy(c.name, "2", edited)
				return asleep(func() {})(g, args)
			}, "in"))
			at := time.Now()
			until := k.work(w)
			if got := len(k.runs(w)); (c.wakes == 0) != (got == 2) || time.Until(until).Round(time.Second) != time.Hour {
				t.Errorf("%s: %d runs since %v, and it looks again in %v", c.name, got, at, time.Until(until))
			}
		}
	})
}
