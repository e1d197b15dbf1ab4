package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
)

// pagesAsked are the pages that were asked for, as "123".
func (u *upstream) pagesAsked() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var b strings.Builder
	for _, text := range u.requests {
		_, rest, _ := strings.Cut(text, "page=")
		page, _, _ := strings.Cut(rest, "&")
		b.WriteString(page)
	}
	return b.String()
}

func (u *upstream) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = nil
}

// book is the real one, with something that happens before it is asked.
type book struct {
	Book
	peek    func()
	acquire func() error
}

func (b *book) Peek(ctx context.Context, domain string) (bool, time.Time, quota.Allowance, error) {
	open, until, a, err := b.Book.Peek(ctx, domain)
	if b.peek != nil {
		b.peek()
	}
	return open, until, a, err
}

func (b *book) Acquire(ctx context.Context, domain string) error {
	if b.acquire != nil {
		if err := b.acquire(); err != nil {
			return err
		}
	}
	return b.Book.Acquire(ctx, domain)
}

// rebook makes the service use another book.
func (k *kit) rebook() *book {
	k.t.Helper()
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(client.Close)
	b := &book{Book: k.s.cfg.Book}
	k.s.cfg.Book, k.s.cfg.Fetcher = b, fetch.New(fetch.Options{Client: client, Book: b})
	return b
}

// B-39: the timeout is that of the whole fetch, not that of one page.
func TestTheTimeoutCoversAllPagesTogether(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.api.fill(300) // 100 pages of 50 ms
		k.api.on(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-r.Context().Done():
			}
			return false
		})
		src := k.apply(definition("s", "/pages", byPage+"execution: {timeout: 1}\n"))
		k.work(src)
		v := k.wantStatus("s", pawl.StatusPausedTransient)
		if n := len(k.items("s")); v.row.ErrorCode != "timeout" || n == 0 || n%pageSize != 0 || n == 300 {
			t.Errorf("it ended with %s after %d rows", v.row.ErrorCode, n)
		}
	})
}

// X-41, B-16: what a server asks for is waited for if it is longer than the own
// backoff, whichever status it comes with.
func TestRetryAfterIsWaitedFor(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for status, code := range map[int]string{429: fetch.CodeLimited, 503: fetch.CodeStatus} {
			k.api.on(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "1800")
				http.Error(w, "later", status)
				return true
			})
			name := fmt.Sprint("s", status)
			src := k.apply(definition(name, "/pages", byPage))
			k.change(`delete from rate_limiter_state`) // what one learns holds for all
			k.work(src)
			v := k.wantStatus(name, pawl.StatusPausedTransient)
			if wait := time.Until(v.retry.NextAt); v.row.ErrorCode != code || v.retry.Count != 1 || wait < 29*time.Minute || wait > 30*time.Minute {
				t.Errorf("%d: %s, %d failures, tried again in %s; want 30m", status, v.row.ErrorCode, v.retry.Count, wait)
			}
		}
	})
}

// a server that says in the middle of its pages when to go on is waited
// for: no failure is spent, and the fetch goes on with the page it was at. One
// that says so without having given a page has refused it.
func TestALimitInTheMiddleOfPagesKeepsThePlace(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		calls := 0
		k.api.on(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			if calls++; calls%3 != 0 {
				return false
			}
			w.Header().Set("Retry-After", "600")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return true
		})
		src := k.apply(definition("s", "/pages", byPage))
		at := k.work(src)
		v := k.wantStatus("s", pawl.StatusPausedTransient)
		if wait := time.Until(at); v.row.ErrorCode != codeDeferred || v.retry.Count != 0 || wait < 9*time.Minute || wait > 10*time.Minute {
			t.Errorf("it stopped with %s, %d failures, and looks again in %s", v.row.ErrorCode, v.retry.Count, wait)
		}
		if k.work(src); k.api.asked() != 3 {
			t.Error("it did not wait")
		}
		k.change(`delete from rate_limiter_state`)
		k.work(src)
		k.change(`delete from rate_limiter_state`)
		if got := k.api.pagesAsked(); !strings.HasPrefix(got, "12334") {
			t.Errorf("it asked for the pages %s", got)
		}
		k.wantStatus("s", pawl.StatusCommitted)
		if got := k.items("s"); !slices.Equal(got, k.api.all()) {
			t.Errorf("the table holds %v", got)
		}

		// Without progress it is a failure; the place is kept all the same.
		k.api.forget()
		calls = 0
		src = k.apply(definition("again", "/pages", byPage))
		k.work(src)
		k.change(`delete from rate_limiter_state`)
		calls = 2
		k.work(src)
		v = k.wantStatus("again", pawl.StatusPausedTransient)
		if v.row.ErrorCode != fetch.CodeLimited || v.retry.Count != 1 {
			t.Errorf("it stopped with %s and %d failures", v.row.ErrorCode, v.retry.Count)
		}
		k.change(`delete from rate_limiter_state`)
		k.change(`update retries set next_retry_at = null`)
		k.work(src)
		k.wantStatus("again", pawl.StatusCommitted)
		if got := k.api.pagesAsked(); got != "123334" {
			t.Errorf("it asked for the pages %s", got)
		}
	})
}

// a place in the pages of another definition is none: an edit begins at
// the first page, whatever the fetch was put off for.
func TestAnEditForgetsThePlace(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		text := definition("s", "/pages", byPage)
		src := k.apply(text)
		k.s.cfg.fault = func(place string) error {
			if place == "written" && k.api.asked() >= 2 {
				k.stopping.Store(true)
			}
			return nil
		}
		k.work(src)
		k.stopping.Store(false)
		k.s.cfg.fault = func(string) error { return nil }
		if v := k.wantStatus("s", pawl.StatusPausedTransient); v.row.ErrorCode != codeInterrupted || len(v.state.Position) == 0 {
			t.Fatalf("%s, position %s", v.row.ErrorCode, v.state.Position)
		}
		k.api.forget()
		src = k.apply(strings.Replace(text, "{source: n, target: n, type: integer}, ", "", 1))
		k.work(src)
		k.wantStatus("s", pawl.StatusCommitted)
		if got := k.api.pagesAsked(); got != "1234" {
			t.Errorf("it asked for the pages %s", got)
		}
	})
}

// what changed between looking and beginning is seen: a source that
// was paused in between does not begin.
func TestAChangeBetweenLookingAndBeginningIsSeen(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		b := k.rebook()
		looks := 0
		b.peek = func() {
			if looks++; looks == 2 { // the last look before it begins
				k.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := k.s.Pause(ctx, tx, "s", "me", lane.PauseTerms{})
					return err
				})
			}
		}
		k.work(src)
		if looks < 2 || k.api.asked() != 0 {
			t.Errorf("after %d looks %d calls were made", looks, k.api.asked())
		}
		if n := k.column(`select id from runs`); len(n) != 0 {
			t.Errorf("the runs are %v", n)
		}
	})
}

// an attempt that crashes at the same place again and again is halted,
// however many pages it writes before; a person lets it go on. One that gets
// further each time is not.
func TestCrashesInACircleHalt(t *testing.T) {
	cursors := "cursorPagination: {cursorParam: cursor, nextCursorPath: cursor}\n"
	for name, c := range map[string]struct{ path, extra string }{"offset": {"/pages", byPage}, "cursor": {"/cursor", cursors}} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				k.api.fill(30)
				poison, pages := 3, 0
				k.fault = crashAtPage(k, &pages, &poison, name == "offset")
				src := k.apply(definition("s", c.path, c.extra))
				crash := func() {
					t.Helper()
					before := k.api.asked()
					if _, err := k.s.work(t.Context(), k, src.ID); err != nil && !errors.Is(err, errFault) {
						t.Fatal(err)
					}
					if k.api.asked() == before {
						t.Fatalf("it is halted before page %d", poison)
					}
					k.start("n")
				}
				for further := range 4 { // each time one page further
					poison = 3 + further
					crash()
				}
				for range 2 { // and now at the same one
					crash()
				}
				// The upstream may count the page that the last attempt asked for in advance
				// only now, so runs tell whether there was another one.
				begun := len(k.column(`select id from runs`))
				k.work(src)
				v := k.wantStatus("s", pawl.StatusCrashed)
				if word, issue := v.status(); word != run.NeedsAttention || issue != run.IssueCrashLoop {
					t.Fatalf("it is %s (%s)", word, issue)
				}
				k.fault = nil
				if k.work(src); len(k.column(`select id from runs`)) != begun {
					t.Fatal("a halted source was fetched")
				}
				k.write(func(ctx context.Context, tx *store.Tx) error { _, err := k.s.Resume(ctx, tx, "s", "me"); return err })
				k.work(src)
				k.wantStatus("s", pawl.StatusCommitted)
			})
		})
	}
}

// crashAtPage crashes before the page of a number is written.
func crashAtPage(k *kit, pages, poison *int, fromTheFirst bool) func(string) error {
	return func(place string) error {
		switch place {
		case "begun":
			*pages = 0
			if v := k.look("s"); !fromTheFirst && len(v.state.Position) > 0 {
				*pages = pagesDone(k.t, v)
			}
		case "page":
			if *pages++; *pages == *poison {
				return errFault
			}
		}
		return nil
	}
}

// B-20, X-33: of a source of which no run is known, the newest row tells when
// it last ran.
func TestTheNewestRowStandsForAnUnknownRun(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage+"schedule: interval:2h\n"))
		k.work(src)
		k.change(`delete from source_runs`)
		k.change(`delete from runs`)
		k.change(`update source_state set last_success_at = null, last_attempt_at = null, last_failed = 0`)
		asked := k.api.asked()
		at := k.work(src)
		if wait := time.Until(at); k.api.asked() != asked || wait < 119*time.Minute || wait > 120*time.Minute {
			t.Errorf("it made %d calls, and looks again in %s", k.api.asked()-asked, wait)
		}
		k.change(`delete from items`)
		if k.work(src); k.api.asked() == asked {
			t.Error("without a row it is due, and did not run")
		}
	})
}

// chaos of the store: the lane is lost for a while, or the book cannot be read.
// That is no failure and no crash of the source, and the place is kept.
func TestTheStoreBeingAwayIsNobodysFailure(t *testing.T) {
	away := &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database cannot be reached"}
	for _, cut := range []string{"lease", "book", "book is slow"} {
		t.Run(cut, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				k.api.fill(24) // 8 pages
				src := k.apply(definition("s", "/pages", byPage))
				b := k.rebook()
				for round := range 4 {
					ctx, cancel := context.WithCancelCause(t.Context())
					calls := 0
					k.s.cfg.fault = func(place string) error {
						if place == "written" && cut == "lease" {
							cancel(queue.ErrLeaseLost)
						}
						return nil
					}
					b.acquire = func() error {
						if calls++; calls < 2 || cut == "lease" {
							return nil
						}
						if cut == "book" {
							return away
						}
						return context.DeadlineExceeded
					}
					if _, err := k.s.work(ctx, k, src.ID); err == nil {
						t.Fatalf("round %d: it says nothing", round)
					}
					cancel(nil)
				}
				b.acquire, k.s.cfg.fault = nil, func(string) error { return nil }
				k.work(src)
				v := k.wantStatus("s", pawl.StatusCommitted)
				if v.retry.Count != 0 || v.retry.Crashes != 0 || len(k.notices) != 0 {
					t.Errorf("%d failures, %d crashes, told %v", v.retry.Count, v.retry.Crashes, k.notices)
				}
				if n := strings.Count(k.api.pagesAsked(), "1"); n != 1 {
					t.Errorf("it began %d times: %s", n, k.api.pagesAsked())
				}
				if bad := k.column(`select status from runs where status = 'crashed' or status like 'failed%'`); len(bad) != 0 {
					t.Errorf("the history has %v", bad)
				}
			})
		})
	}
}

// pagesDone is how far the stored place is.
func pagesDone(t testing.TB, v *view) int {
	t.Helper()
	var at saved
	if err := json.Unmarshal(v.state.Position, &at); err != nil {
		t.Fatal(err)
	}
	return at.Position.Page
}

// A fetch is bounded as a whole, also over the attempts that it takes: what is
// over the limit is not written.
func TestAFetchIsBoundedAsAWhole(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.api.fill(9) // 3 pages of some 150 bytes
		text := strings.Replace(definition("s", "/pages", byPage), "response:\n", "response:\n  maxTotalBytes: 450\n", 1)
		src := k.apply(text)
		k.s.cfg.fault = func(place string) error {
			if place == "written" {
				k.stopping.Store(k.api.asked() < 3)
			}
			return nil
		}
		for range 3 {
			k.work(src)
			k.stopping.Store(false)
		}
		v := k.wantStatus("s", pawl.StatusFailedLogic)
		if v.row.ErrorCode != fetch.CodeTooLarge || !strings.Contains(v.row.ErrorMessage, "response.maxTotalBytes") {
			t.Errorf("%s: %s", v.row.ErrorCode, v.row.ErrorMessage)
		}
		if n := len(k.items("s")); n != 6 {
			t.Errorf("%d rows were written", n)
		}
	})
}
