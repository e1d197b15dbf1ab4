package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Auth is how calls to a domain prove who makes them.
type Auth string

// The ways. The set is closed.
const (
	AuthNone   Auth = ""
	AuthAPIKey Auth = "apiKey"
	AuthBearer Auth = "bearer"
	AuthBasic  Auth = "basic"
	AuthOAuth2 Auth = "oauth2"
)

// Provider is what is known about one domain of the outside. Its secrets
// cannot be read, printed or encoded.
type Provider struct {
	Domain string
	Limit  int           // calls in a period; 0: no limit
	Period time.Duration // 0 if there is no limit
	Auth   Auth
	Place  string // of the definition, as file:line:column

	credential *credential // nil without Auth
}

// String describes the provider without its secrets.
func (p Provider) String() string {
	text := "provider " + p.Domain
	if p.Limit > 0 {
		text += fmt.Sprintf(", %d calls in %s", p.Limit, shortPeriod(p.Period))
	}
	if p.Auth != AuthNone {
		text += ", " + string(p.Auth)
	}
	return text
}

// GoString is String: what is printed for debugging has no secrets either.
func (p Provider) GoString() string { return p.String() }

// Providers are the providers of one process. They do not change. Nil has
// none.
type Providers struct {
	byDomain map[string]Provider
	secrets  redactor
}

// Find returns the provider of a domain.
func (p *Providers) Find(domain string) (Provider, bool) {
	if p == nil {
		return Provider{}, false
	}
	found, ok := p.byDomain[normal(domain)]
	return found, ok
}

// All lists the providers by domain.
func (p *Providers) All() []Provider {
	if p == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(p.byDomain), func(a, b Provider) int { return cmp.Compare(a.Domain, b.Domain) })
}

// String names the domains.
func (p *Providers) String() string { return fmt.Sprint(p.All()) }

// GoString is String.
func (p *Providers) GoString() string { return p.String() }

// Redact returns the text without the secrets of providers and without the
// tokens that were got with them. It is a net for what others may quote; what
// this package says holds none.
func (p *Providers) Redact(text string) string {
	if p == nil {
		return text
	}
	return p.secrets.text(text)
}

// periodUnit is one in which periods are written.
type periodUnit struct {
	name   string
	length time.Duration
}

func periodUnits() []periodUnit {
	return []periodUnit{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
}
