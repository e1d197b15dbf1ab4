// Package price turns tokens into USD for executors that do not say what their
// units cost. The prices are those of the definitions with kind: prices in the
// folder of connections; see Load.
package price

import (
	"math"
	"math/big"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// Tokens are those of one unit of usage. Cached ones are a part of the input.
type Tokens struct {
	Input, CachedInput, Output int64
}

// Price is what the tokens of a model cost.
type Price struct {
	input, cached, output *big.Rat // USD for a token
	text                  string
}

// String is the price as people read it: 1.25 in, 10 out per 1M tokens.
func (p Price) String() string { return p.text }

// Cost is what tokens cost. It is exact, and rounded up once to what can be
// booked; what is more than that is the most that can be.
func (p Price) Cost(t Tokens) pawl.USD {
	cached := min(max(t.CachedInput, 0), max(t.Input, 0))
	sum := new(big.Rat)
	for _, part := range []struct {
		price *big.Rat
		count int64
	}{{p.input, max(t.Input, 0) - cached}, {p.cached, cached}, {p.output, max(t.Output, 0)}} {
		sum.Add(sum, new(big.Rat).Mul(part.price, new(big.Rat).SetInt64(part.count)))
	}
	sum.Mul(sum, new(big.Rat).SetInt64(pawl.OneUSD))
	whole, rest := new(big.Int).QuoRem(sum.Num(), sum.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return pawl.USD(whole.Int64())
}

// Book has the prices by model. It does not change and is safe for concurrent use.
type Book struct{ models map[string]Price }

// Find is the price of a model, by the very name that a graph reports.
func (b *Book) Find(model string) (Price, bool) {
	if b == nil {
		return Price{}, false
	}
	p, known := b.models[model]
	return p, known
}

// units are how many tokens a price is for.
func units() map[string]int64 { return map[string]int64{"1": 1, "1K": 1_000, "1M": 1_000_000} }

// words are a price in the words of its definition.
func (w written) words() string {
	parts := []string{w.Input + " in"}
	if w.CachedInput != "" {
		parts = append(parts, w.CachedInput+" cached")
	}
	parts = append(parts, w.Output+" out per "+w.Unit)
	if w.Unit == "1" {
		return strings.Join(parts, ", ") + " token"
	}
	return strings.Join(parts, ", ") + " tokens"
}
