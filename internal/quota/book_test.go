package quota

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

func acquire(t testing.TB, b *Book, domain string) {
	t.Helper()
	if err := b.Acquire(t.Context(), domain); err != nil {
		t.Fatalf("acquire %s: %v", domain, err)
	}
}

// refused wants a call to be denied and returns why.
func refused(t testing.TB, b *Book, domain string) *Denied {
	t.Helper()
	err := b.Acquire(t.Context(), domain)
	denied, ok := errors.AsType[*Denied](err)
	if !ok {
		t.Fatalf("acquire %s: %v, want it denied", domain, err)
	}
	if !denied.DeniedUntil().Equal(denied.Until) {
		t.Errorf("denied until %v and until %v", denied.DeniedUntil(), denied.Until)
	}
	return denied
}

func peek(t testing.TB, b *Book, domain string) (bool, time.Time, Allowance) {
	t.Helper()
	open, until, a, err := b.Peek(t.Context(), domain)
	if err != nil {
		t.Fatalf("peek %s: %v", domain, err)
	}
	return open, until, a
}

// shift moves the page of a domain in time, as if the clock had moved the
// other way.
func shift(t testing.TB, db *store.DB, by time.Duration) {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update rate_limiter_state set window_start = window_start + $1, blocked_until = blocked_until + $1`, by.Milliseconds())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// near reports whether an instant is so far from now, give or take what a test
// may take.
func near(at time.Time, from time.Duration) bool {
	return time.Until(at).Round(time.Minute) == from.Round(time.Minute)
}

// B-23, X-41, context 3.16: the limit is kept, a look consumes nothing, a
// denial says until when, and a domain that nobody knows has no limit.
func TestBookKeepsTheLimit(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *Book) {
		for i := range 5 {
			for range 3 {
				if open, _, a := peek(t, b, "limited.example"); !open || a.Left != 5-i || !a.Limited || a.Limit != 5 {
					t.Fatalf("after %d calls: open %v, %+v", i, open, a)
				}
			}
			acquire(t, b, "Limited.Example:443")
		}
		denied := refused(t, b, "limited.example")
		open, until, a := peek(t, b, "limited.example")
		if open || a.Left != 0 || !until.Equal(denied.Until) || !a.ResetAt.Equal(until) || !near(until, time.Hour) {
			t.Errorf("open %v until %v, %+v; denied until %v", open, until, a, denied.Until)
		}
		if !strings.Contains(denied.Error(), "limited.example") || !strings.Contains(denied.Error(), "5 calls in 1h") {
			t.Errorf("the denial says %s", denied)
		}
		for range 20 {
			acquire(t, b, "unknown.example")
		}
		if open, _, a := peek(t, b, "unknown.example"); !open || a.Limited {
			t.Errorf("a domain without a provider: open %v, %+v", open, a)
		}
		shift(t, db, -time.Hour)
		if open, _, a := peek(t, b, "limited.example"); !open || a.Left != 5 {
			t.Errorf("after the period: open %v, %+v", open, a)
		}
		acquire(t, b, "limited.example")
	})
}

// B-23, context 3.16.5: all goroutines and processes share one count.
func TestManyBooksNeverExceedTheLimit(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		p := providers(t, "kind: provider\ndomain: shared.example\nlimit: 60\nperiod: 1h\n")
		one := open(t, url)
		other := one
		if one.Shared() {
			other = open(t, url)
		}
		books := []*Book{NewBook(one, p, nil, nil), NewBook(other, p, nil, nil)}
		var allowed, denied atomic.Int32
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() {
				for range 4 {
					err := books[i%2].Acquire(t.Context(), "shared.example")
					if _, no := errors.AsType[*Denied](err); no {
						denied.Add(1)
					} else if err == nil {
						allowed.Add(1)
					} else {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if allowed.Load() != 60 || denied.Load() != 140 {
			t.Errorf("%d calls were allowed and %d denied, want 60 and 140", allowed.Load(), denied.Load())
		}
	})
}

// B-46, context 3.16.5: a crash forgets no call and no request for rest.
func TestCrashKeepsTheCount(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		p := providers(t, limits)
		before := NewBook(open(t, url), p, nil, nil)
		for range 3 {
			acquire(t, before, "limited.example")
		}
		learn(t, before, "resting.example", http.StatusTooManyRequests, "Retry-After", "600")
		after := NewBook(open(t, crashed(t, url)), p, nil, nil)
		if _, _, a := peek(t, after, "limited.example"); a.Left != 2 {
			t.Errorf("%d calls are left, want 2", a.Left)
		}
		_ = refused(t, after, "resting.example")
	})
}

// crashed is the database as a process finds it that starts after another was
// killed: nothing was closed, and the files are as they are.
func crashed(t testing.TB, url string) string {
	t.Helper()
	path, isFile := strings.CutPrefix(url, "sqlite:")
	if !isFile {
		return url
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		write(t, copied+suffix, string(text))
	}
	return "sqlite:" + copied
}

// A clock that is put back, by a little or by years, locks no domain for ever,
// and lets nobody exceed the limit.
func TestClockThatIsPutBackLocksNobodyForEver(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *Book) {
		for _, back := range []time.Duration{20 * time.Minute, 50000 * time.Hour} {
			shift(t, db, -50000*time.Hour)
			for range 5 {
				acquire(t, b, "limited.example")
			}
			learn(t, b, "resting.example", http.StatusServiceUnavailable, "Retry-After", "1800")
			shift(t, db, back)
			denied, rest := refused(t, b, "limited.example"), refused(t, b, "resting.example")
			if wait := time.Until(denied.Until); wait > 2*time.Hour {
				t.Errorf("put back by %v: the limit waits %v", back, wait)
			}
			if wait := time.Until(rest.Until); wait > time.Hour {
				t.Errorf("put back by %v: the rest is %v", back, wait)
			}
			shift(t, db, -time.Until(latest(denied.Until, rest.Until))-time.Second) // so much later
			acquire(t, b, "limited.example")
			acquire(t, b, "resting.example")
		}
	})
}

func learn(t testing.TB, b *Book, domain string, status int, headers ...string) {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	if err := b.Learn(t.Context(), domain, status, h); err != nil {
		t.Fatalf("learn: %v", err)
	}
}

// an answer can ask for rest, up to an hour, or up to a day where the
// provider has such a period.
func TestBookLearnsFromAnswers(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *Book) {
		learn(t, b, "plain.example", http.StatusOK, "Content-Type", "text/html")
		learn(t, b, "busy.example", http.StatusServiceUnavailable)
		learn(t, b, "moved.example", http.StatusMovedPermanently, "Retry-After", "100")
		learn(t, b, "left.example", http.StatusOK, "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "9", "X-RateLimit-Reset", "100")
		for _, domain := range []string{"plain.example", "busy.example", "moved.example", "left.example"} {
			acquire(t, b, domain)
		}
		_, _, a := peek(t, b, "left.example")
		if a.Remote == nil || *a.Remote.Limit != 60 || *a.Remote.Left != 9 || !near(a.Remote.ResetAt, 100*time.Second) {
			t.Errorf("the server's window is %+v", a.Remote)
		}
		for _, c := range []struct {
			domain string
			header []string
			status int
			want   time.Duration
		}{
			{"a.example", []string{"Retry-After", "1200"}, 429, 20 * time.Minute},
			{"b.example", []string{"Retry-After", "99999999"}, 503, time.Hour},
			{"daily.example", []string{"Retry-After", "99999999"}, 429, 24 * time.Hour},
			{"limited.example", []string{"RateLimit-Remaining", "0", "RateLimit-Reset", "600"}, 200, 10 * time.Minute},
			{"c.example", []string{"RateLimit-Reset", "600"}, 429, 10 * time.Minute},
		} {
			learn(t, b, c.domain, c.status, c.header...)
			denied := refused(t, b, c.domain)
			open, until, a := peek(t, b, c.domain)
			if open || !near(until, c.want) || !denied.Until.Equal(until) || !a.BlockedUntil.Equal(until) {
				t.Errorf("%s: open %v, denied until %v, blocked until %v; want %v from now", c.domain, open, denied.Until, a.BlockedUntil, c.want)
			}
		}
		shift(t, db, -10*time.Minute)
		acquire(t, b, "limited.example")
	})
}

// A database that cannot be asked allows nothing.
func TestBookWithoutDatabaseAllowsNothing(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, b *Book) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, domain := range []string{"limited.example", "unknown.example"} {
			if err := b.Acquire(ctx, domain); err == nil {
				t.Errorf("%s was allowed without a look at the book", domain)
			}
		}
		if _, _, a := peek(t, b, "limited.example"); a.Left != 5 {
			t.Errorf("%d calls are left, want 5", a.Left)
		}
	})
}
