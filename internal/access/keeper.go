package access

import (
	"context"
	"errors"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Keeper knows tokens by their texts, and what stays open in their name.
//
// It spares busy callers a look into the database for every request, which
// costs more than most of what they ask for: a token that was found good is
// held for a second. One that is revoked through this keeper ends at once, one
// that is revoked by another process within that second.
type Keeper struct {
	db *store.DB

	mu      sync.Mutex
	era     int64           // raised by Forget; guarded by mu
	entries map[string]held // by hash; guarded by mu

	streams streams
}

type held struct {
	token userstore.Token
	until time.Time
}

const (
	holdTime = time.Second
	mostHeld = 10_000
)

// NewKeeper makes a keeper of the tokens of a database.
func NewKeeper(db *store.DB) *Keeper {
	k := &Keeper{db: db}
	k.streams.look = k.good
	return k
}

// Find gives the good token with this text. It fails with an error of code
// unauthorized, or with that of a database which does not answer.
func (k *Keeper) Find(ctx context.Context, text string, now time.Time) (userstore.Token, error) {
	hash := userstore.HashToken(text)
	t, found, era := k.get(hash, now)
	if found {
		return t, Good(&t, now)
	}
	t, err := k.Load(ctx, text, now)
	if err == nil {
		k.put(hash, t, era, now)
	}
	return t, err
}

// Load is Find that asks the database in any case.
func (k *Keeper) Load(ctx context.Context, text string, now time.Time) (userstore.Token, error) {
	t, err := userstore.On(k.db).TokenByText(ctx, text)
	if errors.Is(err, pawl.ErrNotFound) {
		return t, unauthorized("the token is not known", "Check that it is a token of this server, and all of it.")
	}
	if err != nil {
		return t, err
	}
	return t, Good(&t, now)
}

// Good fails with an error of code unauthorized if a token has ended.
func Good(t *userstore.Token, now time.Time) error {
	switch {
	case !t.RevokedAt.IsZero():
		return unauthorized("the token was revoked", "Create a new one.")
	case t.Expired(now):
		return unauthorized("the token has expired", "Create a new one.")
	}
	return nil
}

func unauthorized(msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeUnauthorized, Msg: msg, Hint: hint}
}

// Forget makes the next request of everybody look into the database, and ends
// what is open in the name of tokens that are no longer good. It is called after
// a token was revoked.
func (k *Keeper) Forget() {
	k.mu.Lock()
	k.era++
	clear(k.entries)
	k.mu.Unlock()
	k.streams.nudge()
}

// get returns a token that was found a moment ago. era is to be given to put.
func (k *Keeper) get(hash string, now time.Time) (t userstore.Token, found bool, era int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[hash]
	return e.token, ok && now.Before(e.until), k.era
}

// put keeps a token that was looked up in an era. If something was forgotten
// meanwhile, what was read may be older than that and is not kept.
func (k *Keeper) put(hash string, t userstore.Token, era int64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if era != k.era {
		return
	}
	if k.entries == nil || len(k.entries) >= mostHeld {
		k.entries = map[string]held{}
	}
	k.entries[hash] = held{t, now.Add(holdTime)}
}

// good tells which of the tokens are good now.
func (k *Keeper) good(ctx context.Context, ids []string) (good map[string]bool, err error) {
	err = k.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		good, err = userstore.In(tx).GoodTokens(ctx, ids)
		return err
	})
	return good, err
}
