package execution

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/price"
)

func bookOf(t *testing.T, models string) *price.Book {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prices.yaml"), []byte("kind: prices\nmodels: "+models+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := price.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func tells(units ...runner.Usage) func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
	return func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
		for _, u := range units {
			if err := emit(runner.Event{Kind: runner.KindUsage, Usage: &u}); err != nil {
				return runner.Result{}, err
			}
		}
		return succeed(ctx, r, emit)
	}
}

// surface 2: the book turns tokens into USD; who tells a cost is believed, and a
// model without a price costs what nobody knows.
func TestTokensAreChargedByTheBook(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.s.prices = bookOf(t, `{gpt-x: {input: 1.25, output: 10, unit: 1M}}`)
		k.fake.run = tells(
			runner.Usage{Unit: "book", Model: "gpt-x", InputTokens: 4, OutputTokens: 9},
			runner.Usage{Unit: "told", Model: "gpt-x", InputTokens: 4, OutputTokens: 9, Cost: 7, CostTold: true},
			runner.Usage{Unit: "gift", Model: "gpt-x", InputTokens: 4, CostTold: true},
			runner.Usage{Unit: "nobody", Model: "gpt-y", InputTokens: 4, Cost: 5},
			runner.Usage{Unit: "nameless", InputTokens: 4},
			runner.Usage{Unit: "nothing", Model: "gpt-y"},
		)
		if answer := k.mustRun("k"); *answer.CostUSD != 950+7 {
			t.Errorf("it cost %s", answer.CostUSD)
		}
		k.mustRun("again")
		for unit, want := range map[string]string{
			"book": "950 1.25 in, 10 out per 1M tokens", "told": "7 ", "gift": "0 ", "nobody": "0 none", "nameless": "0 none", "nothing": "0 ",
		} {
			amount, text, _ := strings.Cut(want, " ")
			if n := k.count(`select count(*) from charge_receipts where source_reference like $1 and amount = `+amount+` and coalesce(price, '') = $2`, "%/1/"+unit, text); n != 2 {
				t.Errorf("%s: %d receipts of %s", unit, n, want)
			}
		}
		said := k.keys.logged()
		if strings.Count(said, "model=gpt-y") != 1 || strings.Contains(said, "model=gpt-x") || !strings.Contains(said, "kind: prices") {
			t.Errorf("the log says %s", said)
		}
	})
}

// Another book is for what is reported later: a unit that has its receipt keeps
// amount and price, also when a run is taken over.
func TestAReceiptKeepsItsPrice(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.s.prices = bookOf(t, `{gpt-x: {input: 1, output: 1, unit: 1M}}`)
		unit := runner.Usage{Unit: "a", Model: "gpt-x", InputTokens: 10}
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if _, err := tells(unit)(ctx, r, emit); err != nil {
				return runner.Result{}, err
			}
			return runner.Result{}, fmt.Errorf("the process died")
		}
		if _, err := k.run("k"); err == nil {
			t.Fatal("it did not die")
		}
		other := k.service("other")
		other.prices = bookOf(t, `{gpt-x: {input: 2, output: 1, unit: 1M}}`)
		k.fake.run = tells(unit, runner.Usage{Unit: "b", Model: "gpt-x", InputTokens: 10})
		answer, err := other.Run(t.Context(), "k", graph, k.request(`{"topic":"autumn"}`))
		if err != nil || *answer.CostUSD != 100+200 {
			t.Errorf("%+v, %v", answer, err)
		}
		if n := k.count(`select count(*) from charge_receipts where amount = 100 and price = '1 in, 1 out per 1M tokens'`); n != 1 {
			t.Errorf("%d receipts have the first price", n)
		}
	})
}

// Graphs choose the names of models.
func TestNamesThatAreToldOnceHaveAnEnd(t *testing.T) {
	var o once
	for i := range 2 * mostOnce {
		o.first(fmt.Sprint(i))
	}
	if o.first("0") || len(o.seen) != mostOnce {
		t.Errorf("%d names", len(o.seen))
	}
}
