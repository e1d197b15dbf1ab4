package userstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Token is the right to ask in the name of a user. The text that proves it is
// not here: only its hash is stored.
type Token struct {
	ID         string
	User       User
	Name       string
	Scopes     []string
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero is never
	RevokedAt  time.Time // zero unless revoked
	LastUsedAt time.Time // zero if never; up to a minute behind
}

// Expired reports whether the token's time is over.
func (t *Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

// TokenSpec asks for a token.
type TokenSpec struct {
	User      User
	Name      string
	Scopes    []string
	ExpiresAt time.Time // zero is never
}

// tokenBytes is the length of a token's random part.
const tokenBytes = 32

// NewTokenText makes the secret text of a token.
func NewTokenText() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // it never fails: the program ends if there is no randomness
	return "pawl_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken is what is stored of a token's text. The text is random and long,
// so a fast hash without salt is enough.
func HashToken(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// CreateToken adds a token and returns it with its text, which cannot be had
// again.
func (tx Tx) CreateToken(ctx context.Context, spec TokenSpec) (t Token, text string, err error) {
	text = NewTokenText()
	t, _, err = tx.EnsureToken(ctx, text, spec)
	return t, text, err
}

// EnsureToken adds a token with a given text, unless it is known. A known one
// is returned as it is, even if it was revoked: its RevokedAt tells.
func (tx Tx) EnsureToken(ctx context.Context, text string, spec TokenSpec) (t Token, created bool, err error) {
	scopes, err := json.Marshal(spec.Scopes)
	if err != nil {
		return t, false, fmt.Errorf("add token: %w", err)
	}
	hash := HashToken(text)
	n, err := tx.Exec(ctx, `insert into tokens (id, user_id, name, hash, scopes, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7) on conflict (hash) do nothing`,
		store.NewID(), spec.User.ID, spec.Name, hash, string(scopes), store.Millis(tx.Now), store.NullMillis(spec.ExpiresAt))
	if err != nil {
		return t, false, fmt.Errorf("add token: %w", err)
	}
	t, err = tx.tokenByHash(ctx, hash)
	return t, n == 1, err
}

const selectToken = `select t.id, t.name, t.scopes, t.created_at, t.expires_at, t.revoked_at, t.last_used_at, t.hash,
	u.id, u.name, u.role, u.created_at from tokens t join users u on u.id = t.user_id `

// TokenByText finds a token by its secret text, or fails with pawl.ErrNotFound.
// Whether it is still good is for the caller to judge.
func (db DB) TokenByText(ctx context.Context, text string) (t Token, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		t, err = In(tx).tokenByHash(ctx, HashToken(text))
		return err
	})
	return t, err
}

func (tx Tx) tokenByHash(ctx context.Context, hash string) (Token, error) {
	t, found, err := tx.oneToken(ctx, selectToken+`where t.hash = $1`, hash)
	if err != nil {
		return t, err
	}
	// The index found it; the comparison that counts tells nothing by its time.
	if subtle.ConstantTimeCompare([]byte(found), []byte(hash)) != 1 {
		return Token{}, errNoToken()
	}
	return t, nil
}

// TokenByID finds a token, or fails with pawl.ErrNotFound.
func (tx Tx) TokenByID(ctx context.Context, id string) (Token, error) {
	t, _, err := tx.oneToken(ctx, selectToken+`where t.id = $1`, id)
	return t, err
}

func (tx Tx) oneToken(ctx context.Context, sql, arg string) (t Token, hash string, err error) {
	tokens, hashes, err := scanTokens(tx.Query(ctx, sql, arg))
	if err != nil {
		return t, "", fmt.Errorf("find token: %w", err)
	}
	if len(tokens) == 0 {
		return t, "", errNoToken()
	}
	return tokens[0], hashes[0], nil
}

func errNoToken() error {
	return &pawl.Error{Code: pawl.CodeNotFound, Op: "find token", Msg: "there is no such token"}
}

// ListTokens reads up to limit tokens, the newest first: those of one user, or
// of all if userID is empty. before is the id of the last one that was read
// already, or empty.
func (db DB) ListTokens(ctx context.Context, userID, before string, limit int) (out []Token, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		c := store.BelowID("t.id", before)
		c.Add("(? = '' or t.user_id = ?)", userID, userID)
		out, _, err = scanTokens(tx.Query(ctx, selectToken+`where `+c.String()+` order by t.id desc`+c.Limit(limit), c.Args...))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return out, nil
}

// scanTokens also gives the hash of each token.
func scanTokens(rows store.Rows, err error) (tokens []Token, hashes []string, _ error) {
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t Token
		var scopes, hash, role string
		var created, userCreated int64
		var expires, revoked, used *int64
		if err := rows.Scan(&t.ID, &t.Name, &scopes, &created, &expires, &revoked, &used, &hash, &t.User.ID, &t.User.Name, &role, &userCreated); err != nil {
			return nil, nil, err
		}
		if err := json.Unmarshal([]byte(scopes), &t.Scopes); err != nil {
			return nil, nil, fmt.Errorf("read scopes of token %s: %w", t.ID, err)
		}
		t.CreatedAt, t.ExpiresAt, t.RevokedAt, t.LastUsedAt = store.FromMillis(created), store.FromNullMillis(expires), store.FromNullMillis(revoked), store.FromNullMillis(used)
		t.User.Role, t.User.CreatedAt = Role(role), store.FromMillis(userCreated)
		tokens, hashes = append(tokens, t), append(hashes, hash)
	}
	return tokens, hashes, rows.Err()
}

// GoodTokens tells which of the tokens are neither revoked nor expired.
func (tx Tx) GoodTokens(ctx context.Context, ids []string) (map[string]bool, error) {
	good := map[string]bool{}
	for batch := range store.Batches(ids) {
		text, args := store.In([]any{store.Millis(tx.Now)}, batch)
		rows, err := tx.Query(ctx, `select id from tokens where revoked_at is null and (expires_at is null or expires_at > $1) and id in `+text, args...)
		found, err := store.ScanAll(rows, err, "look at tokens", func(row store.Scanner) (id string, err error) { return id, row.Scan(&id) })
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			good[id] = true
		}
	}
	return good, nil
}

// RevokeToken ends a token for good. It reports whether the token was good
// until now.
func (tx Tx) RevokeToken(ctx context.Context, id string) (changed bool, err error) {
	n, err := tx.Exec(ctx, `update tokens set revoked_at = $2 where id = $1 and revoked_at is null`, id, store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("revoke token: %w", err)
	}
	return n == 1, nil
}

// TokenUseEvery is how exact LastUsedAt is.
const TokenUseEvery = time.Minute

// TouchToken notes that a token was used. The note is lazy and may be lost.
func (db DB) TouchToken(ctx context.Context, id string, at time.Time) error {
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update tokens set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at <= $3)`,
			id, store.Millis(at), store.Millis(at.Add(-TokenUseEvery)))
		return err
	}, store.Lazy)
}
