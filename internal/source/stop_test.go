package source

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
)

const byCursor = "cursorPagination: {cursorParam: cursor, nextCursorPath: cursor}\n"

// what is only put off is noted with its run and is no failure of
// the source; what fails is counted, for as long as the source exists.
func TestFailuresAreCountedAndDelaysAreNoted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		k.api.on(func(n int, _ http.ResponseWriter, _ *http.Request) bool {
			if n == 2 { // it stops in the middle
				k.stopping.Store(true)
			}
			return false
		})
		k.work(src)
		if d, err := k.s.Describe(t.Context(), "s"); err != nil || d.State.FailuresTotal != 0 || d.Recent[0].Note != "The server stopped; it continues after a restart." {
			t.Errorf("after a delay there are %d failures, and the run is noted as %q (%v)", d.State.FailuresTotal, d.Recent[0].Note, err)
		}
		k.stopping.Store(false)
		k.api.on(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "down", http.StatusBadGateway)
			return true
		})
		k.work(src)
		k.wantStatus("s", pawl.StatusPausedTransient)
		if d, err := k.s.Describe(t.Context(), "s"); err != nil || d.State.FailuresTotal != 1 || strings.Contains(d.Recent[0].Note, "stopped") {
			t.Errorf("after a failure there are %d, and the run is noted as %q (%v)", d.State.FailuresTotal, d.Recent[0].Note, err)
		}
	})
}

// A place at which the API refuses to go on is no good any more: the next fetch
// begins at the first page. One that got further keeps the place it came to, and
// so does one whose server is merely away.
func TestAPlaceThatIsRefusedIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		at     string // where the attempt that continues is refused
		want   string // the first call after that
	}{
		"refused at once":          {http.StatusBadRequest, "c3", "/cursor"},
		"refused one page further": {http.StatusBadRequest, "c6", "/cursor?cursor=c6"},
		"away":                     {http.StatusBadGateway, "c3", "/cursor?cursor=c3"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				src := k.apply(definition("s", "/cursor", byCursor))
				refuse := func(cursor string, status int) {
					k.api.on(func(_ int, w http.ResponseWriter, r *http.Request) bool {
						if r.URL.Query().Get("cursor") != cursor {
							return false
						}
						http.Error(w, "no", status)
						return true
					})
				}
				refuse("c3", http.StatusBadGateway)
				k.work(src)
				k.wantStatus("s", pawl.StatusPausedTransient)
				refuse(c.at, c.status)
				k.change(`update retries set next_retry_at = 1`)
				k.work(src)
				k.api.on(nil)
				k.api.forget()
				k.change(`update retries set next_retry_at = 1`)
				k.work(src)
				k.wantStatus("s", pawl.StatusCommitted)
				if got := k.api.requests[0]; got != c.want {
					t.Errorf("it went on with %s, want %s", got, c.want)
				}
			})
		})
	}
}

// a person who cancels on another node is faster than the page in hand: it
// is not written, and the run stays cancelled.
func TestAPersonElsewhereIsFaster(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		there, err := New(k.s.cfg)
		if err != nil {
			t.Fatal(err)
		}
		there.Attach(&k.armed)
		k.api.on(func(n int, _ http.ResponseWriter, _ *http.Request) bool {
			if n == 3 { // the second page may be in hand
				k.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := there.Pause(ctx, tx, "s", "me", lane.PauseTerms{})
					return err
				})
			}
			return false
		})
		if _, err := k.s.work(t.Context(), k, src.ID); err != nil && !errors.Is(err, pawl.ErrConflict) {
			t.Error(err)
		}
		v := k.wantStatus("s", pawl.StatusCancelled)
		if got := k.items("s"); len(got) < pageSize || len(got) > 2*pageSize || v.retry.Count != 0 || v.state.FailuresTotal != 0 {
			t.Errorf("the table holds %v, and %d failures are counted", got, v.state.FailuresTotal)
		}
	})
}

// A table that somebody changed by hand ends a fetch with the reason and what to
// do, in the words of apply.
func TestATableThatWasChangedByHandIsExplained(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		k.work(src)
		k.change(`alter table items rename column close to opened`)
		k.change(`alter table items add column close text`)
		k.change(`update source_state set last_success_at = 1`)
		k.work(src)
		v := k.wantStatus("s", pawl.StatusFailedLogic)
		if v.row.ErrorCode != "table_mismatch" || !strings.HasPrefix(v.row.ErrorMessage, "table items does not match source s: column close: ") || strings.Count(v.row.ErrorMessage, ". ") == 0 {
			t.Errorf("%s: %s", v.row.ErrorCode, v.row.ErrorMessage)
		}
	})
}
