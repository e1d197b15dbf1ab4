package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/quotastore"
)

// rule is what holds for one domain.
type rule struct {
	domain  string
	limit   quotastore.CallLimit // zero: none
	longest time.Duration        // rest that the domain can ask for
}

func (r rule) limited() bool { return r.limit.Calls > 0 }

// Allowance is how a domain stands, for people.
type Allowance struct {
	Domain       string
	Limited      bool
	Limit, Left  int       // calls in a window; only if Limited
	ResetAt      time.Time // when the window ends; zero while there is none
	BlockedUntil time.Time // the domain asked not to be called before; zero if it did not
	Remote       *Remote   // what the domain told about its own window; nil if nothing that still holds
}

// Remote is a window as the other side counts it. Nil and zero are what it did
// not tell.
type Remote struct {
	Limit, Left *int64
	ResetAt     time.Time
}

// judge says how a domain stands at an instant, by its page.
func (r rule) judge(c quotastore.DomainCalls, now time.Time) Allowance {
	a := Allowance{Domain: r.domain, Limited: r.limited(), Limit: r.limit.Calls}
	if c.BlockedUntil.After(now) {
		a.BlockedUntil = earliest(c.BlockedUntil, now.Add(r.longest))
	}
	remote := c.Remote
	if (remote.Limit != nil || remote.Left != nil || !remote.ResetAt.IsZero()) && (remote.ResetAt.IsZero() || remote.ResetAt.After(now)) {
		a.Remote = &Remote{Limit: remote.Limit, Left: remote.Left, ResetAt: remote.ResetAt}
	}
	if !a.Limited {
		return a
	}
	a.Left = a.Limit
	if start := r.start(c, now); start.After(now.Add(-r.limit.Period)) && c.Count > 0 {
		a.Left = max(0, a.Limit-c.Count)
		a.ResetAt = start.Add(r.limit.Period)
	}
	return a
}

// start is when the window of a page began. One that begins more than a period
// from now was written by a clock that has been put back.
func (r rule) start(c quotastore.DomainCalls, now time.Time) time.Time {
	if c.WindowStart.After(now.Add(r.limit.Period)) {
		return now
	}
	return c.WindowStart
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// deny is why a call must not be made at an instant, or nil.
func (r rule) deny(c quotastore.DomainCalls, now time.Time) *Denied {
	a := r.judge(c, now)
	usedUp := a.Limited && a.Left == 0
	switch {
	case usedUp && a.ResetAt.After(a.BlockedUntil):
		return &Denied{Domain: r.domain, Until: a.ResetAt, Why: fmt.Sprintf("the limit of %d calls in %s is used up", a.Limit, shortPeriod(r.limit.Period))}
	case !a.BlockedUntil.IsZero():
		return &Denied{Domain: r.domain, Until: a.BlockedUntil, Why: "the server asked for rest"}
	}
	return nil
}

// broken reports whether a page has instants that only a clock which has been
// put back since can have written.
func (r rule) broken(c quotastore.DomainCalls, now time.Time) bool {
	return c.BlockedUntil.After(now.Add(r.longest)) || r.limited() && c.WindowStart.After(now.Add(r.limit.Period))
}

// repair puts a broken page right, so that what is judged as "an hour from now"
// comes nearer.
func (r rule) repair(ctx context.Context, tx *store.Tx, c quotastore.DomainCalls) error {
	if !r.broken(c, tx.Now) {
		return nil
	}
	return quotastore.In(tx).RepairCalls(ctx, r.domain, tx.Now.Add(r.longest), tx.Now.Add(r.limit.Period))
}

// shortPeriod writes a period as provider files do.
func shortPeriod(d time.Duration) string {
	for _, u := range periodUnits() {
		if d%u.length == 0 {
			return fmt.Sprintf("%d%s", d/u.length, u.name)
		}
	}
	return d.String()
}
