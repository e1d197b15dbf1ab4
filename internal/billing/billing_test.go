package billing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestMain(m *testing.M) { migrated.Main(m) }

const graph = "langgraph:poet"

// kit is a database with one user.
type kit struct {
	t    testing.TB
	db   *store.DB
	user string
}

func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		k := &kit{t: t, db: db}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			u, err := userstore.In(tx).EnsureUser(ctx, "ada", userstore.RoleOperator)
			k.user = u.ID
			return err
		})
		test(t, k)
	})
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) grant(caps grant.Caps) (g grant.Grant) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		g, err = grant.Service{}.Create(ctx, tx, k.user, grant.Spec{Scopes: []string{grant.ScopeFor(graph)}, Caps: caps})
		return err
	})
	return g
}

// asked puts a request for a run into the book, as the execution service does
// before it reserves.
func asked(ctx context.Context, tx *store.Tx, g grant.Grant, runID string) error {
	_, err := executionstore.In(tx).ClaimExecution(ctx, executionstore.Execution{Key: runID, RunID: runID, Attempt: 1, GraphID: graph, GrantID: g.ID, Owner: "o", LeaseUntil: tx.Now})
	return err
}

func (k *kit) reserve(g grant.Grant, runID string, estimate pawl.USD) error {
	return k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := asked(ctx, tx, g, runID); err != nil {
			return err
		}
		return Reserve(ctx, tx, g, runID, 1, estimate)
	})
}

func attemptOf(g grant.Grant, runID string) Attempt {
	return Attempt{RunID: runID, Attempt: 1, AccountID: g.BillingAccountID, GrantID: g.ID, ScheduleID: "s", Executor: "langgraph"}
}

func (k *kit) settle(g grant.Grant, runID string, facts ...Fact) (cost pawl.USD) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		cost, err = Settle(ctx, tx, attemptOf(g, runID), facts)
		return err
	})
	return cost
}

func which(err error) string {
	if e, ok := errors.AsType[*CapError](err); ok {
		return e.Which
	}
	return ""
}

func micro(n int64) *pawl.USD { return (*pawl.USD)(&n) }

// C-03, X-36: caps with reservation before and settlement after.
func TestCapsBoundRuns(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		perDay := k.grant(grant.Caps{USDPerDay: micro(100)})
		for i, c := range []struct {
			estimate pawl.USD
			want     string
		}{{60, ""}, {41, CapUSDPerDay}, {40, ""}, {0, CapUSDPerDay}} {
			if err := k.reserve(perDay, fmt.Sprint("day", i), c.estimate); which(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("run %d: %v", i, err)
			}
		}
		k.settle(perDay, "day0", Fact{Unit: "a", Cost: 30}) // 60 were set aside
		if err := k.reserve(perDay, "day4", 30); err != nil {
			t.Errorf("after the settlement: %v", err)
		}
		if err := k.reserve(perDay, "day5", 1); which(err) != CapUSDPerDay {
			t.Errorf("spent and reserved to the brim: %v", err)
		}

		perRun := k.grant(grant.Caps{USDPerRun: micro(10)})
		if err := k.reserve(perRun, "run0", 11); which(err) != CapUSDPerRun {
			t.Errorf("a dear run: %v", err)
		}
		if err := k.reserve(perRun, "run1", 10); err != nil {
			t.Errorf("a run at the cap: %v", err)
		}

		runs := k.grant(grant.Caps{RunsPerDay: new(int64(2))})
		for i, want := range []string{"", "", CapRunsPerDay} {
			if err := k.reserve(runs, fmt.Sprint("many", i), 0); which(err) != want {
				t.Errorf("run %d of the day: %v", i, err)
			}
		}
		closed := k.grant(grant.Caps{USDPerDay: micro(0)})
		if err := k.reserve(closed, "none", 0); which(err) != CapUSDPerDay {
			t.Errorf("a cap of nothing: %v", err)
		}
	})
}

func TestCapErrorIsOneOfPawl(t *testing.T) {
	err := fmt.Errorf("x: %w", &CapError{Which: CapBalance, Msg: "m"})
	if contract.CodeOf(err) != contract.InsufficientCredits || pawl.ErrorCode(err) != pawl.CodeForbidden {
		t.Errorf("%s", contract.CodeOf(err))
	}
}

// Days are UTC: what was spent yesterday does not count.
func TestDayIsThatOfUTC(t *testing.T) {
	east := time.FixedZone("east", 14*3600)
	if got := Day(time.Date(2030, 1, 2, 5, 0, 0, 0, east)); !got.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Error(got)
	}
	both(t, func(t *testing.T, k *kit) {
		g := k.grant(grant.Caps{USDPerDay: micro(10), RunsPerDay: new(int64(1))})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			today := tx.Now
			tx.Now = Day(today).Add(-time.Millisecond)
			if err := asked(ctx, tx, g, "yesterday"); err != nil {
				return err
			}
			if err := Reserve(ctx, tx, g, "yesterday", 1, 5); err != nil {
				return err
			}
			if _, err := Settle(ctx, tx, attemptOf(g, "yesterday"), []Fact{{Unit: "a", Cost: 10}}); err != nil {
				return err
			}
			if err := Reserve(ctx, tx, g, "yesterday-2", 1, 1); which(err) != CapRunsPerDay {
				t.Errorf("yesterday: %v", err)
			}
			tx.Now = today
			return Reserve(ctx, tx, g, "today", 1, 10)
		})
	})
}

// An account that is prepaid refuses what it cannot pay, and goes below zero
// for what was used all the same (context 3.19.4).
func TestPrepaidBalance(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g := k.grant(grant.Caps{})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return grantstore.In(tx).SetBalance(ctx, g.BillingAccountID, new(int64(100)))
		})
		if err := k.reserve(g, "a", 101); which(err) != CapBalance {
			t.Errorf("too dear: %v", err)
		}
		if err := k.reserve(g, "b", 70); err != nil {
			t.Error(err)
		}
		if err := k.reserve(g, "c", 31); which(err) != CapBalance {
			t.Errorf("set aside twice: %v", err)
		}
		k.settle(g, "b", Fact{Unit: "x", Cost: 150})
		if err := k.reserve(g, "d", 0); which(err) != CapBalance {
			t.Errorf("overdrawn: %v", err)
		}
		var accounts []Account
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			accounts, _, err = Accounts(ctx, tx, k.user, grantstore.AccountCursor{}, 7, 10)
			return err
		})
		if len(accounts) != 1 || *accounts[0].Balance != -50 || accounts[0].Reserved != 0 || len(accounts[0].Days) != 1 || accounts[0].Days[0].Amount != 150 {
			t.Errorf("%+v", accounts)
		}
	})
}

// C-04, C-55, X-56, context 3.19: each unit is charged once however often it is
// reported; units that cost nothing have receipts too; nothing goes below zero.
func TestUnitsAreChargedOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g := k.grant(grant.Caps{})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return grantstore.In(tx).SetBalance(ctx, g.BillingAccountID, new(int64(1000)))
		})
		facts := []Fact{
			{Unit: "a", Model: "m", InputTokens: 3, OutputTokens: 4, Cost: 7}, {Unit: "free"}, {Unit: "a", Cost: 9},
			{Unit: "mad", Cost: -5, InputTokens: -1}, {Unit: Unit("", 5), Cost: 1},
		}
		for i := range 3 {
			if cost := k.settle(g, "r", facts...); cost != 8 {
				t.Errorf("time %d: %s", i, cost)
			}
		}
		var page []grantstore.Receipt
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			account, err := grantstore.In(tx).AccountByID(ctx, g.BillingAccountID)
			if err != nil || *account.Balance != 992 {
				t.Errorf("balance of %+v: %v", account, err)
			}
			page, _, err = Receipts(ctx, tx, grantstore.ReceiptFilter{OwnerID: k.user}, grantstore.ReceiptCursor{}, 10)
			return err
		})
		references := map[string]int64{}
		for _, r := range page {
			references[r.Reference] = r.Amount
			if r.System != "pawl" || r.GrantID != g.ID || r.ScheduleID != "s" || r.Executor != "langgraph" || r.InputTokens < 0 {
				t.Errorf("%+v", r)
			}
		}
		if fmt.Sprint(references) != "map[r/1/a:7 r/1/free:0 r/1/mad:0 r/1/unit-5:1]" {
			t.Errorf("%v", references)
		}
	})
}

func TestReceiptsHaveACursor(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g := k.grant(grant.Caps{})
		k.settle(g, "r", Fact{Unit: "a"}, Fact{Unit: "b"}, Fact{Unit: "c"})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			first, next, err := Receipts(ctx, tx, grantstore.ReceiptFilter{OwnerID: k.user}, grantstore.ReceiptCursor{}, 2)
			if err != nil || len(first) != 2 || next.ID == "" {
				t.Errorf("%v %v %v", first, next, err)
			}
			second, end, err := Receipts(ctx, tx, grantstore.ReceiptFilter{OwnerID: k.user}, next, 2)
			if len(second) != 1 || end.ID != "" {
				t.Errorf("%v %v", second, end)
			}
			return err
		})
	})
}

func TestUnitWithoutNameGetsOneThatStays(t *testing.T) { // context 3.19.3
	long := strings.Repeat("x", 201)
	if Unit("", 3) != "unit-3" || Unit("a", 3) != "a" || Unit(long, 1) != Unit(long, 2) || len(Unit(long, 1)) > 100 || Unit(long, 1) == Unit(long+"y", 1) {
		t.Errorf("%s %s", Unit("", 3), Unit(long, 1))
	}
}

// The estimate is the average of the newest runs, rounded up once; before there
// are any it is the cap of a run.
func TestEstimate(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		free, capped := k.grant(grant.Caps{}), k.grant(grant.Caps{USDPerRun: micro(50)})
		estimate := func(g grant.Grant) (m pawl.USD) {
			k.write(func(ctx context.Context, tx *store.Tx) (err error) {
				m, err = Estimate(ctx, tx, g, graph)
				return err
			})
			return m
		}
		if estimate(free) != 0 || estimate(capped) != 50 {
			t.Errorf("without runs: %s %s", estimate(free), estimate(capped))
		}
		for i := range 22 {
			cost := pawl.USD(10)
			if i < 2 {
				cost = 1_000_000 // too long ago to count
			}
			run := fmt.Sprint("r", i)
			k.write(func(ctx context.Context, tx *store.Tx) error {
				tx.Now = tx.Now.Add(time.Duration(i-100) * time.Second)
				if err := asked(ctx, tx, capped, run); err != nil {
					return err
				}
				_, err := Settle(ctx, tx, attemptOf(capped, run), []Fact{{Unit: "a", Cost: cost}, {Unit: "b", Cost: pawl.USD(i % 2)}})
				return err
			})
		}
		if got := estimate(capped); got != 11 { // 10.5, rounded up
			t.Errorf("%d", got)
		}
	})
}

// A reservation is judged once: an attempt that has one was started.
func TestReserveAgainChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g := k.grant(grant.Caps{USDPerDay: micro(10)})
		for range 2 {
			if err := k.reserve(g, "r", 10); err != nil {
				t.Error(err)
			}
		}
	})
}

// Runs that start together do not each see the whole budget.
func TestReserveTogetherKeepsTheCap(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g := k.grant(grant.Caps{USDPerDay: micro(30)})
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { errs[i] = k.reserve(g, fmt.Sprint("r", i), 10) })
		}
		all.Wait()
		passed := 0
		for _, err := range errs {
			if err == nil {
				passed++
			} else if which(err) != CapUSDPerDay {
				t.Error(err)
			}
		}
		if passed != 3 {
			t.Errorf("%d of 8 runs fit in", passed)
		}
	})
}
