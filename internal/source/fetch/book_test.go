package fetch

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// denial is what a book says when it says no.
type denial struct{ until time.Time }

func (d denial) Error() string          { return "not now" }
func (d denial) DeniedUntil() time.Time { return d.until }

// Our own limiter saying no defers the fetch: nothing is sent, and it is no
// failure. X-41
func TestDenialByTheBookDefers(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	until := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	book := &fakeBook{deny: fmt.Errorf("acquire a call: %w", denial{until})}
	_, err := next(t, newFetcher(t, book), Ask{Definition: define(server.URL)}, Position{})
	e := mustFail(t, err, CodeDeferred)
	if !e.Deferred || !e.Until.Equal(until) || !strings.Contains(e.Msg, "2026-05-01T12:00:00.000Z") {
		t.Errorf("got %+v", e)
	}
}

func TestBookThatCannotBeReadIsAFaultOfOurs(t *testing.T) {
	book := &fakeBook{deny: io.ErrClosedPipe}
	_, err := next(t, newFetcher(t, book), Ask{Definition: define(serveText(t, `{}`).URL)}, Position{})
	if e := mustFail(t, err, CodeInternal); e.Deferred || e.Class != pawl.ClassInternal {
		t.Errorf("got %+v", e)
	}
}

// Every page takes one call from the book and tells it the answer, also one
// that says no. X-41
func TestEveryPageAsksAndTellsTheBook(t *testing.T) {
	calls := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 3 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if r.Header.Get("Authorization") != "Bearer tok" {
			t.Errorf("the credential is %q", r.Header.Get("Authorization"))
		}
		_, _ = fmt.Fprintf(w, `{"data":%s,"next":"%d"}`, rowsJSON(calls, calls), calls)
	})
	book := &fakeBook{tokens: []string{"tok"}}
	d := define(server.URL)
	d.CursorPagination = &spec.CursorPagination{CursorParam: "c", NextCursorPath: "next"}
	_, _, err := all(t, newFetcher(t, book), Ask{Definition: d})
	if e := mustFail(t, err, CodeLimited); e.RetryAfter != 7*time.Second || e.Deferred {
		t.Errorf("got %+v", e)
	}
	domain := strings.TrimPrefix(server.URL, "http://")
	if !slices.Equal(book.acquired, []string{domain, domain, domain}) || !slices.Equal(book.learned, []int{200, 200, 429}) {
		t.Errorf("acquired %v, learned %v", book.acquired, book.learned)
	}
}

// A credential that ran out is renewed once; one that stays the same is not
// sent again.
func TestRefusedCredentialIsRenewedOnce(t *testing.T) {
	tests := []struct {
		tokens   []string
		requests int
		fails    bool
	}{
		{[]string{"old", "new"}, 2, false},
		{[]string{"old"}, 1, true},
		{[]string{"old", "older", "new"}, 2, true},
	}
	for _, test := range tests {
		calls := 0
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			if r.Header.Get("Authorization") != "Bearer new" {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, "bad "+r.Header.Get("Authorization"))
				return
			}
			_, _ = io.WriteString(w, `{"data":[]}`)
		})
		book := &fakeBook{tokens: test.tokens}
		page, err := next(t, newFetcher(t, book), Ask{Definition: define(server.URL)}, Position{})
		if calls != test.requests || len(book.acquired) != test.requests {
			t.Errorf("%v: %d calls, %d from the book, want %d", test.tokens, calls, len(book.acquired), test.requests)
		}
		if !test.fails {
			if err != nil || page.Requests != 2 || book.rejected != 1 {
				t.Errorf("%v: got %v", test.tokens, err)
			}
			continue
		}
		e := mustFail(t, err, CodeUnauthorized)
		if e.Class != pawl.ClassAuth || strings.Contains(e.Msg, "old") {
			t.Errorf("%v: class %s: %s", test.tokens, e.Class, e.Msg)
		}
	}
}

// Servers repeat the query in their links. The key is in no position and no
// page, which are stored, and yet on every request.
func TestCredentialsAreNotInPositions(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("api_key") != "s3cr3t" {
			t.Error("a request without its key")
		}
		page := len(query.Get("p")) + 1
		next := ""
		if page < 3 {
			query.Set("p", strings.Repeat("x", page))
			next = "http://" + r.Host + "/?" + query.Encode()
		}
		_, _ = fmt.Fprintf(w, `{"data":%s,"next":%q}`, rowsJSON(page, page), next)
	})
	f := newFetcher(t, &fakeBook{tokens: []string{"s3cr3t"}, inQuery: true})
	d := define(server.URL + "/?q=all")
	d.LinkPagination = &spec.LinkPagination{NextPath: "next"}
	page, err := next(t, f, Ask{Definition: d}, Position{})
	if err != nil {
		t.Fatal(err)
	}
	if want := server.URL + "/?p=x&q=all"; page.Next.NextURL != want {
		t.Errorf("the link is %s, want %s", page.Next.NextURL, want)
	}
	if want := server.URL + "/?api_key=***&q=***"; page.URL != want {
		t.Errorf("the page is from %s, want %s", page.URL, want)
	}
	values, pages, err := all(t, f, Ask{Definition: d})
	if err != nil || pages != 3 || !reflect.DeepEqual(values, ids(3)) {
		t.Errorf("got %v in %d pages, %v", values, pages, err)
	}
}
