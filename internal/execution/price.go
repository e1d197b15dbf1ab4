package execution

import (
	"sync"

	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/price"
)

// factOf is a unit of usage as it is booked. An executor that says what it cost is
// believed; else the price of the model tells. Without one nobody knows what it
// cost: it is booked as nothing, and the receipt says why.
func (s *Service) factOf(u runner.Usage) billing.Fact {
	fact := billing.Fact{Unit: u.Unit, Model: u.Model, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost}
	if u.CostTold || u.InputTokens <= 0 && u.OutputTokens <= 0 {
		return fact
	}
	p, known := s.prices.Find(u.Model)
	if !known {
		fact.Cost, fact.Price = 0, billing.NoPrice
		if s.unpriced.first(u.Model) {
			s.log.Warn("a model has no price, so that what it costs is not known", "model", u.Model, "hint", "Add it to a definition with kind: prices in the folder of connections.")
		}
		return fact
	}
	fact.Cost, fact.Price = p.Cost(price.Tokens{Input: u.InputTokens, CachedInput: u.CachedTokens, Output: u.OutputTokens}), p.String()
	return fact
}

// once knows which names were told. Graphs choose the names, so there is an end to
// them.
type once struct {
	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

const mostOnce = 1000

func (o *once) first(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[name] || len(o.seen) >= mostOnce {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[name] = true
	return true
}
