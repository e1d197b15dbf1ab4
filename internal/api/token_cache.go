package api

import (
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// tokenCache spares busy callers a look into the database for every request,
// which costs more than most of what they ask for. It holds good tokens for a
// second: one that is revoked by this process ends at once, one that is revoked
// by another process within that second.
type tokenCache struct {
	mu      sync.Mutex
	era     int64                  // raised by forget; guarded by mu
	entries map[string]cachedToken // by hash; guarded by mu
}

type cachedToken struct {
	token store.Token
	until time.Time
}

const (
	tokenCacheTime = time.Second
	maxCached      = 10_000
)

// get returns a token that was found a moment ago. era is to be given to put.
func (c *tokenCache) get(hash string, now time.Time) (t store.Token, found bool, era int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[hash]
	return e.token, ok && now.Before(e.until), c.era
}

// put keeps a token that was looked up in an era. If something was forgotten
// meanwhile, what was read may be older than that and is not kept.
func (c *tokenCache) put(hash string, t store.Token, era int64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if era != c.era {
		return
	}
	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[string]cachedToken{}
	}
	c.entries[hash] = cachedToken{t, now.Add(tokenCacheTime)}
}

// forget makes the next request of everybody look into the database.
func (c *tokenCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	clear(c.entries)
}
