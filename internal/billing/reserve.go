package billing

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/when"
)

// Which bound a run would break.
const (
	CapUSDPerDay  = "usd_per_day"
	CapUSDPerRun  = "usd_per_run"
	CapRunsPerDay = "runs_per_day"
	CapBalance    = "balance" // of a prepaid account
)

// CapError refuses a run because of money. The run was not started.
type CapError struct {
	Which string // one of the constants above
	Msg   string

	// Until is when the day ends whose cap is reached: the run would fit into the
	// next one. Zero: it would not, or no day has to do with it. It has the zone of
	// the account.
	Until time.Time
}

// Error says which bound was met.
func (e *CapError) Error() string { return e.Msg }

// Unwrap tells it in the one error type of Pawl.
func (e *CapError) Unwrap() error {
	return &pawl.Error{
		Code: pawl.CodeForbidden, Reason: string(contract.InsufficientCredits), Op: "reserve credits", Msg: e.Msg,
		Hint: "Wait for the next day, raise the cap with a new grant, or add credits.",
	}
}

// estimateFrom is how many of the newest runs an estimate looks at.
const estimateFrom = 20

// Estimate is what a run of a graph under a grant will probably cost: the
// average of the newest runs that have receipts, rounded up; before there are
// any, the cap per run; without one, nothing.
func Estimate(ctx context.Context, tx *store.Tx, g grant.Grant, graphID string) (pawl.USD, error) {
	runs, total, err := grantstore.In(tx).RecentCosts(ctx, g.ID, graphID, estimateFrom)
	switch {
	case err != nil:
		return 0, err
	case runs > 0:
		return pawl.USD((total + runs - 1) / runs), nil
	case g.Caps.USDPerRun != nil:
		return *g.Caps.USDPerRun, nil
	}
	return 0, nil
}

// Reserve sets aside what an attempt of a run will probably cost, or refuses it
// with a *CapError. An attempt that has its reservation keeps it and is not
// judged again: it was started. The grant and the account are held until the
// transaction ends, so that rivals are judged one after the other.
func Reserve(ctx context.Context, tx *store.Tx, g grant.Grant, runID string, attempt int, estimate pawl.USD) error {
	if _, err := grantstore.In(tx).HoldGrant(ctx, g.ID); err != nil {
		return err
	}
	account, err := grantstore.In(tx).HoldAccount(ctx, g.BillingAccountID)
	if err != nil {
		return err
	}
	has, err := grantstore.In(tx).HasReservation(ctx, runID, attempt)
	if err != nil || has {
		return err
	}
	if err := checkCaps(ctx, tx, g, zoneOf(account), runID, int64(estimate)); err != nil {
		return err
	}
	if err := checkBalance(ctx, tx, account, int64(estimate)); err != nil {
		return err
	}
	return grantstore.In(tx).InsertReservation(ctx, grantstore.ChargeReservation{
		RunID: runID, Attempt: attempt, GrantID: g.ID, AccountID: account.ID, Amount: int64(estimate),
	})
}

// ReserveFor is Reserve with the estimate for a graph.
func ReserveFor(ctx context.Context, tx *store.Tx, g grant.Grant, graphID, runID string, attempt int) error {
	estimate, err := Estimate(ctx, tx, g, graphID)
	if err != nil {
		return err
	}
	return Reserve(ctx, tx, g, runID, attempt, estimate)
}

// Unbounded reports whether neither the grant nor its account bounds what runs
// may cost. Then nothing has to be set aside, and nobody is held: runs of one
// owner do not wait for each other.
func Unbounded(g grant.Grant, account grantstore.Account) bool {
	return g.Caps.USDPerDay == nil && g.Caps.USDPerRun == nil && g.Caps.RunsPerDay == nil && account.Balance == nil
}

// Untouched reports whether all that bounds a grant is a daily cap, of which nothing
// was ever used: what runs under it has cost nothing so far. Then there is nothing
// to judge and nothing to set aside.
func Untouched(g grant.Funded) bool {
	c := g.Caps
	return c.USDPerDay != nil && *c.USDPerDay > 0 && c.USDPerRun == nil && c.RunsPerDay == nil && g.Account.Balance == nil && !g.Charged
}

// zoneOf is the zone whose days count for an account.
func zoneOf(account grantstore.Account) *time.Location {
	zone, err := when.LoadZone(account.Timezone)
	if err != nil { // this machine does not know it any more
		return time.UTC
	}
	return zone
}

func checkCaps(ctx context.Context, tx *store.Tx, g grant.Grant, zone *time.Location, runID string, estimate int64) error {
	if limit := g.Caps.USDPerRun; limit != nil && estimate > int64(*limit) {
		return &CapError{Which: CapUSDPerRun, Msg: fmt.Sprintf("a run costs about %s USD, and the grant allows %s USD for one", pawl.USD(estimate), limit)}
	}
	today, tomorrow := when.DayIn(tx.Now, zone)
	// One that no day has room for is not a matter of waiting.
	until := func(ever bool) time.Time {
		if !ever {
			return time.Time{}
		}
		return tomorrow.In(zone)
	}
	if limit := g.Caps.RunsPerDay; limit != nil {
		runs, err := grantstore.In(tx).RunsOfGrant(ctx, g.ID, today, runID)
		if err != nil {
			return err
		}
		if runs >= *limit {
			return &CapError{CapRunsPerDay, fmt.Sprintf("the daily cap of %d runs is reached (%d were asked for today, %s)", *limit, runs, zone), until(*limit > 0)}
		}
	}
	if limit := g.Caps.USDPerDay; limit != nil {
		spent, err := grantstore.In(tx).SpentByGrant(ctx, g.ID, today)
		if err != nil {
			return err
		}
		reserved, err := grantstore.In(tx).ReservedByGrant(ctx, g.ID)
		if err != nil {
			return err
		}
		if !fits(estimate, int64(*limit)-spent-reserved) {
			return &CapError{CapUSDPerDay, fmt.Sprintf("the daily cap of %s USD is reached (%s USD are spent today, %s, %s USD are set aside for open runs, and a run costs about %s USD)",
				limit, pawl.USD(spent), zone, pawl.USD(reserved), pawl.USD(estimate)), until(fits(estimate, int64(*limit)))}
		}
	}
	return nil
}

func checkBalance(ctx context.Context, tx *store.Tx, account grantstore.Account, estimate int64) error {
	if account.Balance == nil {
		return nil
	}
	reserved, err := grantstore.In(tx).ReservedByAccount(ctx, account.ID)
	if err != nil {
		return err
	}
	if !fits(estimate, *account.Balance-reserved) {
		return &CapError{Which: CapBalance, Msg: fmt.Sprintf("the billing account has %s USD left, %s USD set aside for open runs, and a run costs about %s USD",
			pawl.USD(*account.Balance), pawl.USD(reserved), pawl.USD(estimate))}
	}
	return nil
}

// fits: with nothing left, not even a run whose cost is not known may start.
func fits(estimate, left int64) bool { return left > 0 && estimate <= left }

// Day is the beginning of the UTC day of an instant.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
