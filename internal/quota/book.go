package quota

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/quotastore"
)

// Bounds of what a server can ask for.
const (
	longestRest    = time.Hour      // of any domain
	longestDayRest = 24 * time.Hour // of one whose provider has a period as long
)

// Book is the book of calls and of credentials. It is safe for concurrent use.
type Book struct {
	db        *store.DB
	providers *Providers
	tokens    map[string]*keeper // by domain; those of OAuth2 only
	log       *slog.Logger
}

// NewBook makes a book over a database, for the given providers. Several books
// over one database share its counts.
func NewBook(db *store.DB, p *Providers, client *outbound.Client, log *slog.Logger) *Book {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if p == nil {
		p = &Providers{}
	}
	b := &Book{db: db, providers: p, tokens: map[string]*keeper{}, log: log}
	for _, provider := range p.All() {
		if provider.Auth == AuthOAuth2 {
			b.tokens[provider.Domain] = &keeper{provider: provider, client: client, log: log, note: p.secrets.note}
		}
	}
	return b
}

// Denied is a call that the book does not allow now. It is no failure of the
// call, which was not made.
type Denied struct {
	Domain string
	Until  time.Time // when to ask again
	Why    string    // for people
}

// Error says which domain has to wait, why, and until when.
func (d *Denied) Error() string {
	return d.Domain + " is not called before " + pawl.FormatTime(d.Until) + ": " + d.Why
}

// DeniedUntil is when to ask again.
func (d *Denied) DeniedUntil() time.Time { return d.Until }

// Acquire books one call to a domain. It fails with *Denied when the book says
// no; then nothing was counted.
func (b *Book) Acquire(ctx context.Context, domain string) error {
	r := b.ruleOf(normal(domain))
	if r.limited() {
		return b.count(ctx, r)
	}
	return b.pass(ctx, r)
}

// count books a call to a domain with a limit.
func (b *Book) count(ctx context.Context, r rule) error {
	var denied *Denied
	err := b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		taken, calls, err := quotastore.In(tx).TakeCall(ctx, r.domain, r.limit)
		if err != nil || taken {
			denied = nil
			return err
		}
		if denied = r.deny(calls, tx.Now); denied == nil {
			return errors.New("book a call: the page of " + r.domain + " says neither yes nor no")
		}
		return r.repair(ctx, tx, calls)
	}, store.Lazy)
	return outcome(err, denied)
}

// pass lets a call through to a domain without a limit, unless it asked for
// rest. Nothing is written, so such domains cost no more than a look.
func (b *Book) pass(ctx context.Context, r rule) error {
	var denied *Denied
	var broken bool
	err := b.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		calls, err := quotastore.In(tx).GetCalls(ctx, r.domain)
		if err == nil {
			denied, broken = r.deny(calls, tx.Now), r.broken(calls, tx.Now)
		}
		return err
	})
	if err == nil && broken {
		err = b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			calls, err := quotastore.In(tx).GetCalls(ctx, r.domain)
			if err != nil {
				return err
			}
			return r.repair(ctx, tx, calls)
		}, store.Lazy)
	}
	return outcome(err, denied)
}

// outcome is the error of Acquire; a nil *Denied would be none of them.
func outcome(err error, denied *Denied) error {
	switch {
	case err != nil:
		return err
	case denied != nil:
		return denied
	}
	return nil
}

// Peek tells whether a call to the domain would be allowed, and if not, when
// to ask again. It never counts one.
func (b *Book) Peek(ctx context.Context, domain string) (open bool, until time.Time, a Allowance, err error) {
	r := b.ruleOf(normal(domain))
	err = b.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		calls, err := quotastore.In(tx).GetCalls(ctx, r.domain)
		if err != nil {
			return err
		}
		a = r.judge(calls, tx.Now)
		open, until = true, time.Time{}
		if denied := r.deny(calls, tx.Now); denied != nil {
			open, until = false, denied.Until
		}
		return nil
	})
	return open, until, a, err
}

// Learn notes what an answer of the domain tells about its limits, and until
// when it wants to be left alone. An answer that tells nothing costs nothing.
func (b *Book) Learn(ctx context.Context, domain string, status int, h http.Header) error {
	r := b.ruleOf(normal(domain))
	told := readAccount(h, time.Now(), r.longest)
	rest := restUntil(status, h, told, time.Now(), r.longest)
	if told.empty() && rest.IsZero() {
		return nil
	}
	if !rest.IsZero() {
		b.log.InfoContext(ctx, "a domain asks for rest", "domain", r.domain, "status", status, "until", pawl.FormatTime(rest))
	}
	note := quotastore.DomainCalls{
		Domain: r.domain, BlockedUntil: rest,
		Remote: quotastore.RemoteAccount{Limit: told.limit, Left: told.left, ResetAt: told.reset},
	}
	return b.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return quotastore.In(tx).NoteCalls(ctx, note, tx.Now.Add(r.longest))
	}, store.Lazy)
}

func (b *Book) ruleOf(domain string) rule {
	r := rule{domain: domain, longest: longestRest}
	if p, ok := b.providers.Find(domain); ok {
		r.limit = quotastore.CallLimit{Calls: p.Limit, Period: p.Period}
		r.longest = max(longestRest, min(p.Period, longestDayRest))
	}
	return r
}
