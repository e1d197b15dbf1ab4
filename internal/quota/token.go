package quota

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

const (
	renewBefore   = time.Minute      // its end, or a quarter of its life, a token is renewed
	renewPause    = 10 * time.Second // after a renewal that did not work, while the old token is good
	rejectPause   = 30 * time.Second // between two tokens that are given up because a server refused them
	longestAsking = 30 * time.Second // for a token
)

// token is one that a token endpoint gave out.
type token struct {
	value     secret // nil: none
	renewAt   time.Time
	expiresAt time.Time
}

// keeper has the token of one domain. However many want it, at most one
// request for it is under way.
type keeper struct {
	provider Provider
	client   *outbound.Client
	log      *slog.Logger
	note     func(domain string, token secret) // so that it is redacted

	mu         sync.Mutex
	current    token     // guarded by mu, as are the rest
	asking     *asking   // nil if nobody asks
	failedAt   time.Time // when asking last did not work
	rejectedAt time.Time // when a token was last given up
}

// asking is a request for a token. What it found is there once done is closed.
type asking struct {
	done  chan struct{}
	found token
	err   error
}

// get returns a token that is good now. If a new one cannot be had, the old one
// is used to its end.
func (k *keeper) get(ctx context.Context) (secret, error) {
	now := time.Now()
	k.mu.Lock()
	old := k.current
	good := old.value != nil && now.Before(old.expiresAt)
	if good && (now.Before(old.renewAt) || now.Sub(k.failedAt) < renewPause) {
		k.mu.Unlock()
		return old.value, nil
	}
	if k.asking == nil {
		k.asking = &asking{done: make(chan struct{})}
		go k.ask(context.WithoutCancel(ctx), k.asking) // others wait for it, so it outlives who asked first
	}
	a := k.asking
	k.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, &CredentialError{Domain: k.provider.Domain, Class: pawl.ClassTransient, Msg: "the call was cancelled", Err: context.Cause(ctx)}
	case <-a.done:
	}
	if a.err != nil && good {
		return old.value, nil
	}
	return a.found.value, a.err
}

// ask gets a token and tells everybody who waits.
func (k *keeper) ask(ctx context.Context, a *asking) {
	ctx, cancel := context.WithTimeout(ctx, longestAsking)
	defer cancel()
	a.found, a.err = requestToken(ctx, k.provider, k.client)
	if a.err == nil {
		k.note(k.provider.Domain, a.found.value)
	} else {
		k.log.WarnContext(ctx, "no token for a domain", "domain", k.provider.Domain, "reason", a.err.Error())
	}
	k.mu.Lock()
	k.asking = nil
	if a.err == nil {
		k.current = a.found
	} else {
		k.failedAt = time.Now()
	}
	k.mu.Unlock()
	close(a.done)
}

// reject gives up the token that a header has, unless somebody did already. A
// server that refuses every token must not make us ask for one with every call.
func (k *keeper) reject(header string, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	isCurrent := k.current.value != nil && bearer(k.current.value) == header
	pausing := !k.rejectedAt.IsZero() && now.Sub(k.rejectedAt) < rejectPause
	if isCurrent && !pausing {
		k.current, k.rejectedAt = token{}, now
	}
}
