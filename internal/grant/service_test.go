package grant

import (
	"context"
	"errors"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// a wildcard needs consent, whose instant is kept; automatic grants are
// exact.
func TestWildcardNeedsConsent(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		all := []string{wildcard}
		if _, err := k.create(k.ada, Spec{Scopes: all}); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("without consent: %v", err)
		}
		if _, err := k.create(k.ada, Spec{Scopes: all, WildcardConsent: true, Automatic: true}); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("automatic: %v", err)
		}
		g, err := k.create(k.ada, Spec{Scopes: all, WildcardConsent: true})
		if err != nil || g.WildcardConsentAt.IsZero() || Check(g, "any:graph", time.Now()) != nil {
			t.Errorf("%+v %v", g, err)
		}
		exact, err := k.create(k.ada, Spec{Scopes: []string{ScopeFor("a:b")}, WildcardConsent: true})
		if err != nil || !exact.WildcardConsentAt.IsZero() {
			t.Errorf("consent to nothing was kept: %+v %v", exact, err)
		}
	})
}

func TestAutomaticGrantCoversItsGraphAlone(t *testing.T) { // C-27, X-61
	both(t, func(t *testing.T, k *kit) {
		k.write(func(ctx context.Context, tx *store.Tx) error {
			g, err := Service{}.CreateForGraph(ctx, tx, k.ada, "a:b")
			if err != nil || !g.Automatic || len(g.Scopes) != 1 || Check(g, "a:b", tx.Now) != nil || Check(g, "a:c", tx.Now) == nil {
				t.Errorf("%+v %v", g, err)
			}
			for _, id := range []string{"*", "a:*", "poet", ""} {
				if _, err := (Service{}).CreateForGraph(ctx, tx, k.ada, id); !errors.Is(err, pawl.ErrInvalid) {
					t.Errorf("%q: %v", id, err)
				}
			}
			return nil
		})
	})
}

func TestCreateRefusesWhatCannotBe(t *testing.T) {
	negative, runs := pawl.USD(-1), int64(-1)
	both(t, func(t *testing.T, k *kit) {
		for name, change := range map[string]func(*Spec){
			"expired":      func(s *Spec) { s.ExpiresAt = time.Now().Add(-time.Second) },
			"usd per day":  func(s *Spec) { s.Caps.USDPerDay = &negative },
			"usd per run":  func(s *Spec) { s.Caps.USDPerRun = &negative },
			"runs per day": func(s *Spec) { s.Caps.RunsPerDay = &runs },
			"no scope":     func(s *Spec) { s.Scopes = nil },
		} {
			spec := Spec{Scopes: []string{ScopeFor("a:b")}}
			change(&spec)
			if _, err := k.create(k.ada, spec); !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// C-03, context 3.18: what is somebody else's looks as if it were not there,
// billing accounts included.
func TestForeignGrantsAreNotThere(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g, err := k.create(k.ada, Spec{Scopes: []string{ScopeFor("a:b"), ScopeFor("a:b")}})
		if err != nil || g.UserID != k.ada || len(g.Scopes) != 1 {
			t.Fatalf("%+v %v", g, err)
		}
		if _, err := k.create(k.bob, Spec{Scopes: g.Scopes, BillingAccountID: g.BillingAccountID}); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("somebody else's account: %v", err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			s := Service{}
			if _, err := s.Get(ctx, tx, k.bob, g.ID); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("get: %v", err)
			}
			if _, err := s.Revoke(ctx, tx, k.bob, g.ID); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("revoke: %v", err)
			}
			if err := s.Delete(ctx, tx, k.bob, g.ID); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("delete: %v", err)
			}
			if list, err := s.List(ctx, tx, k.bob, "", 9); err != nil || len(list) != 0 {
				t.Errorf("list: %v %v", list, err)
			}
			list, err := s.List(ctx, tx, k.ada, "", 9)
			if err != nil || len(list) != 1 || !list[0].RevokedAt.IsZero() {
				t.Errorf("the owner's list: %v %v", list, err)
			}
			revoked, err := s.Revoke(ctx, tx, k.ada, g.ID)
			if err != nil || revoked.RevokedAt.IsZero() {
				t.Errorf("the owner's revocation: %+v %v", revoked, err)
			}
			return s.Delete(ctx, tx, k.ada, g.ID)
		})
	})
}
