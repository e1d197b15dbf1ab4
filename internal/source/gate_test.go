package source

import (
	"strings"
	"testing"
	"time"
)

// What a gate says is what holds the source back: the host, the limit set here, or
// both if the limit lasts longer.
func TestTheQuotaGateSaysWhatHoldsBack(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(definition("s", "/pages", byPage))
		now := time.Now()
		for name, c := range map[string]struct {
			open           bool
			blocked, until time.Duration
			limited        bool
			left           int
			says, saysNot  string
		}{
			"the host":                     {blocked: time.Hour, until: time.Hour, says: "asked not to be called", saysNot: "limit set here"},
			"the host, and the limit more": {blocked: time.Hour, until: 2 * time.Hour, says: "limit set here", saysNot: "no limit"},
			"the limit":                    {until: time.Hour, says: "The limit set here", saysNot: "asked"},
			"one is left":                  {open: true, limited: true, left: 1, says: "1 of 5 calls", saysNot: "no limit"},
			"some are left":                {open: true, limited: true, left: 3, says: "3 of 5 calls", saysNot: "no limit"},
			"no limit":                     {open: true, left: 1, says: "has no limit here", saysNot: "left"},
		} {
			v := k.look("s")
			v.now, v.quotaOpen, v.quotaUntil = now, c.open, now.Add(c.until)
			v.allowance.Limited, v.allowance.Left, v.allowance.Limit = c.limited, c.left, 5
			v.allowance.BlockedUntil = now.Add(c.blocked)
			g := v.gateQuota()
			if g.Open != c.open || !strings.Contains(g.Text, c.says) || strings.Contains(g.Text, c.saysNot) {
				t.Errorf("%s: open %v, %q", name, g.Open, g.Text)
			}
		}
	})
}

// A source whose attempts are used up says so and when it goes on.
func TestTheRetryGateSaysThatAttemptsAreUsedUp(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(definition("s", "/pages", byPage+"execution: {maxRetries: 2, retryResetPeriod: 1d}\n"))
		now := time.Now()
		for count, c := range map[int]struct {
			says  string
			until time.Duration
		}{1: {"backing off after failure 1 of 2", time.Hour}, 2: {"a new period begins at", 24 * time.Hour}} {
			v := k.look("s")
			v.now, v.retry.Count, v.retry.PeriodStart, v.retry.NextAt = now, count, now, now.Add(time.Hour)
			if g := v.gateRetry(); g.Open || !strings.Contains(g.Text, c.says) || !g.Until.Equal(now.Add(c.until)) {
				t.Errorf("after %d failures: open %v, until %v, %q", count, g.Open, g.Until, g.Text)
			}
		}
	})
}
