package quota

import (
	"slices"
	"sync"

	"github.com/pawlrun/pawl/internal/redact"
)

// tokensKept are those of a domain: the one in use, and the one that calls under
// way still have.
const tokensKept = 2

// redactor puts the names of domains in place of their secrets. The zero value
// knows none.
type redactor struct {
	mu     sync.RWMutex
	fixed  []hidden            // guarded by mu, as are the rest
	tokens map[string][]hidden // by domain
	all    redact.Redactor
}

// hidden is one value, behind a function so that it cannot be printed.
type hidden struct {
	domain string
	value  secret
}

// add knows another secret for good.
func (r *redactor) add(domain string, value secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fixed = append(r.fixed, hidden{domain, value})
	r.rebuild()
}

// note knows a token, in place of older ones of the domain.
func (r *redactor) note(domain string, token secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tokens == nil {
		r.tokens = map[string][]hidden{}
	}
	list := append(r.tokens[domain], hidden{domain, token})
	r.tokens[domain] = list[max(0, len(list)-tokensKept):]
	r.rebuild()
}

// rebuild makes the redactor of all secrets. The caller has mu.
func (r *redactor) rebuild() {
	list := r.fixed
	for _, tokens := range r.tokens {
		list = slices.Concat(list, tokens)
	}
	var all []redact.Secret
	for _, h := range list {
		all = append(all, redact.Secret{Name: "of " + h.domain, Value: h.value()})
	}
	r.all = redact.New(all)
}

func (r *redactor) text(text string) string {
	r.mu.RLock()
	all := r.all
	r.mu.RUnlock()
	return all.Text(text)
}
