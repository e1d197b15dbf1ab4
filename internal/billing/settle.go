package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// System is the source system of the receipts that are written here.
const System = "pawl"

// Bounds of what an executor may claim about one unit. What it says is not
// trusted, and must not make an account overflow.
const (
	maxUnitCost = pawl.USD(1_000_000_000_000) // 100,000 USD
	maxTokens   = 1 << 50
	maxUnitName = 200 // bytes
)

// Attempt is one attempt of a run, and who pays for it.
type Attempt struct {
	RunID      string
	Attempt    int
	AccountID  string
	GrantID    string
	ScheduleID string // empty: not of a schedule
	Executor   string // the provider of the graph
}

// Fact is one unit of usage, as an executor reported it.
type Fact struct {
	Unit         string // names it within its attempt; see Unit for a missing one
	Model        string
	InputTokens  int64
	OutputTokens int64
	Cost         pawl.USD
	Price        string // that the cost comes from; NoPrice; empty: the executor told the cost
}

// NoPrice is the price of a model that has none: nobody knows what the unit cost.
const NoPrice = "none"

// Who told what a unit cost.
const (
	CostOfExecutor = "executor"
	CostOfPrices   = "prices"
	CostUnknown    = "unknown" // booked as nothing
)

// CostSource tells by the price of a receipt where its amount comes from.
func CostSource(price string) string {
	switch price {
	case "":
		return CostOfExecutor
	case NoPrice:
		return CostUnknown
	}
	return CostOfPrices
}

// Unpriced finds a model of a run that has no price; not found means that all that
// the run cost is known.
func Unpriced(ctx context.Context, tx *store.Tx, runID string) (model string, found bool, err error) {
	return grantstore.In(tx).ModelWithPrice(ctx, runID, NoPrice)
}

// Unit names the n-th unit of an attempt, counted from 1. An executor should
// name its units; one that did not gets a name that is the same when the units
// are reported again. Names that are too long are replaced by their hash.
func Unit(reported string, n int) string {
	switch {
	case reported == "":
		return fmt.Sprintf("unit-%d", n)
	case len(reported) > maxUnitName:
		sum := sha256.Sum256([]byte(reported))
		return "sha256-" + hex.EncodeToString(sum[:])
	}
	return reported
}

// Charge writes the receipts of some facts, each once however often it is
// reported, and lowers the balance by what is new. Facts must have their
// units. Units that cost nothing have receipts too.
func Charge(ctx context.Context, tx *store.Tx, a Attempt, facts []Fact) error {
	var charged int64
	for _, f := range facts {
		amount := int64(within(f.Cost, maxUnitCost))
		added, err := grantstore.In(tx).InsertReceipt(ctx, grantstore.Receipt{
			AccountID: a.AccountID, GrantID: a.GrantID, ScheduleID: a.ScheduleID, RunID: a.RunID, Attempt: a.Attempt,
			System: System, Reference: run.UsageReference(a.RunID, a.Attempt, f.Unit), Executor: a.Executor, Model: f.Model,
			InputTokens: within(f.InputTokens, maxTokens), OutputTokens: within(f.OutputTokens, maxTokens), Amount: amount, Price: f.Price,
		})
		if err != nil {
			return err
		}
		if added {
			charged += amount
		}
	}
	if charged == 0 {
		return nil
	}
	return grantstore.In(tx).LowerBalance(ctx, a.AccountID, charged)
}

func within[T int64 | pawl.USD](v, most T) T { return min(max(v, 0), most) }

// Settle ends the money of an attempt: it charges the facts, releases the
// reservation and tells what the run has cost, all attempts together. It belongs into the
// transaction that writes the outcome.
func Settle(ctx context.Context, tx *store.Tx, a Attempt, facts []Fact) (pawl.USD, error) {
	if err := Charge(ctx, tx, a, facts); err != nil {
		return 0, err
	}
	if err := grantstore.In(tx).DeleteReservation(ctx, a.RunID, a.Attempt); err != nil {
		return 0, err
	}
	cost, err := grantstore.In(tx).CostOfRun(ctx, a.RunID)
	return pawl.USD(cost), err
}
