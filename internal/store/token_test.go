package store_test

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func ensureUser(t testing.TB, db *store.DB, name string, role userstore.Role) (u userstore.User) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		u, err = userstore.In(tx).EnsureUser(ctx, name, role)
		return err
	})
	return u
}

func createToken(t testing.TB, db *store.DB, spec userstore.TokenSpec) (token userstore.Token, text string) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		token, text, err = userstore.In(tx).CreateToken(ctx, spec)
		return err
	})
	return token, text
}

func TestTokenIsFoundByItsTextOnly(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada := ensureUser(t, db, "ada", userstore.RoleOperator)
		expires := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
		token, text := createToken(t, db, userstore.TokenSpec{User: ada, Name: "ci", Scopes: []string{"jobs:read", "*"}, ExpiresAt: expires})
		if len(text) != len("pawl_")+43 || !strings.HasPrefix(text, "pawl_") {
			t.Errorf("text %q", text)
		}
		found, err := userstore.On(db).TokenByText(t.Context(), text)
		if err != nil || found.ID != token.ID || found.User != ada || !found.ExpiresAt.Equal(expires) || len(found.Scopes) != 2 || found.Name != "ci" {
			t.Errorf("found %+v %v", found, err)
		}
		for _, wrong := range []string{"", text[:len(text)-1], text + "x", userstore.HashToken(text), strings.ToUpper(text)} {
			if _, err := userstore.On(db).TokenByText(t.Context(), wrong); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		if raw, err := hex.DecodeString(userstore.HashToken(text)); err != nil || len(raw) != 32 {
			t.Errorf("hash %s", userstore.HashToken(text))
		}
		if n := store.CountForTest(t, db, `select count(*) from tokens where hash = $1`, userstore.HashToken(text)); n != 1 {
			t.Errorf("%d rows with the hash", n)
		}
	})
}

func TestTokenTextsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		seen[userstore.NewTokenText()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 texts differ", len(seen))
	}
}

func TestTokenExpires(t *testing.T) {
	now := time.Now()
	for after, want := range map[time.Duration]bool{-time.Second: true, 0: true, time.Second: false} {
		token := userstore.Token{ExpiresAt: now.Add(after)}
		if token.Expired(now) != want {
			t.Errorf("expires %v from now: %v", after, !want)
		}
	}
	if (&userstore.Token{}).Expired(now) {
		t.Error("a token without an end expired")
	}
}

// EnsureToken is for a text that was found somewhere: it is added once, and
// never brought back to life.
func TestEnsureTokenAddsOnceAndRevivesNothing(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		spec := userstore.TokenSpec{User: ensureUser(t, db, "admin", userstore.RoleAdmin), Name: "admin.token", Scopes: []string{"*"}}
		ensure := func() (token userstore.Token, created bool) {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				token, created, err = userstore.In(tx).EnsureToken(ctx, "pawl_from_a_file", spec)
				return err
			})
			return token, created
		}
		first, created := ensure()
		second, again := ensure()
		if !created || again || first.ID != second.ID {
			t.Errorf("created %v, then %v", created, again)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			changed, err := userstore.In(tx).RevokeToken(ctx, first.ID)
			if !changed {
				t.Error("not revoked")
			}
			return err
		})
		third, again := ensure()
		if again || third.RevokedAt.IsZero() {
			t.Errorf("revoked, and then %+v", third)
		}
	})
}

func TestRevokeTokenTellsWhetherItChanged(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		token, _ := createToken(t, db, userstore.TokenSpec{User: ensureUser(t, db, "ada", userstore.RoleViewer), Scopes: []string{}})
		for i, want := range []bool{true, false} {
			var changed bool
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				changed, err = userstore.In(tx).RevokeToken(ctx, token.ID)
				return err
			})
			if changed != want {
				t.Errorf("time %d: %v", i+1, changed)
			}
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if changed, err := userstore.In(tx).RevokeToken(ctx, "nobody's"); changed || err != nil {
				t.Errorf("unknown: %v %v", changed, err)
			}
			_, err := userstore.In(tx).TokenByID(ctx, "nobody's")
			if !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("unknown: %v", err)
			}
			return nil
		})
	})
}

func TestListTokensNewestFirst(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada, bob := ensureUser(t, db, "ada", userstore.RoleViewer), ensureUser(t, db, "bob", userstore.RoleViewer)
		var ids []string
		for i := range 5 {
			user := ada
			if i == 2 {
				user = bob
			}
			token, _ := createToken(t, db, userstore.TokenSpec{User: user, Scopes: []string{"read"}})
			ids = append(ids, token.ID)
		}
		names := func(userID, before string, limit int) (out []string) {
			tokens, err := userstore.On(db).ListTokens(t.Context(), userID, before, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, token := range tokens {
				out = append(out, token.ID)
			}
			return out
		}
		if got := names("", "", 2); len(got) != 2 || got[0] != ids[4] || got[1] != ids[3] {
			t.Errorf("first page %v", got)
		}
		if got := names("", ids[3], 9); len(got) != 3 || got[0] != ids[2] {
			t.Errorf("second page %v", got)
		}
		if got := names(bob.ID, "", 9); len(got) != 1 || got[0] != ids[2] {
			t.Errorf("bob's %v", got)
		}
	})
}

func TestTouchTokenOnceAMinute(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		token, text := createToken(t, db, userstore.TokenSpec{User: ensureUser(t, db, "ada", userstore.RoleViewer), Scopes: []string{"read"}})
		used := func() time.Time {
			found, err := userstore.On(db).TokenByText(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			return found.LastUsedAt
		}
		for _, c := range []struct{ touch, want int }{{0, 0}, {59, 0}, {60, 60}, {30, 60}} {
			if err := userstore.On(db).TouchToken(t.Context(), token.ID, store.AtForTest(c.touch)); err != nil {
				t.Fatal(err)
			}
			if got := used(); !got.Equal(store.AtForTest(c.want)) {
				t.Errorf("touched at %d: %v", c.touch, got)
			}
		}
	})
}

func TestEnsureUserKeepsTheRole(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		first := ensureUser(t, db, "ada", userstore.RoleViewer)
		if again := ensureUser(t, db, "ada", userstore.RoleAdmin); again != first || again.Role != userstore.RoleViewer {
			t.Errorf("first %+v, then %+v", first, again)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := userstore.In(tx).UserByName(ctx, "nobody"); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("unknown: %v", err)
			}
			return nil
		})
	})
}
