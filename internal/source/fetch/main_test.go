package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/source/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLimit bounds every call of a test that should end sooner by itself.
const testLimit = time.Minute

// newFetcher makes a fetcher that may call the loopback.
func newFetcher(t testing.TB, book Book) *Fetcher {
	t.Helper()
	allowed, err := outbound.ParsePrefixes([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: allowed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return New(Options{Client: client, Book: book})
}

// serve starts a server that closes with the test.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// serveText answers every request with a body.
func serveText(t testing.TB, body string) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
}

// define makes a normalised definition that reads the id of rows at data.
func define(url string) spec.Definition {
	return spec.Definition{
		Name: "orders", URL: url, Table: "orders", Status: spec.Active,
		Response: spec.Response{
			Format: spec.JSON, DataPath: "data", MaxPages: 100, MaxBytes: 8 << 20,
			Fields: []spec.Field{{Source: "id", Target: "id", Type: spec.Integer}},
		},
	}
}

// next gets one page, within testLimit, and closes it with the test.
func next(t testing.TB, f *Fetcher, ask Ask, from Position) (*Page, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	page, err := f.Next(ctx, ask, from)
	if err == nil {
		t.Cleanup(func() { _ = page.Close() })
	}
	return page, err
}

// one gets the first page of a definition, which must not fail.
func one(t testing.TB, d spec.Definition) *Page {
	t.Helper()
	page, err := next(t, newFetcher(t, nil), Ask{Definition: d, Spool: t.TempDir()}, Position{})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// all follows the pages to the last one, or to an error, and returns the
// values of the first field.
func all(t testing.TB, f *Fetcher, ask Ask) (values []any, pages int, err error) {
	t.Helper()
	for at := ask.From; ; {
		page, err := next(t, f, ask, at)
		if err != nil {
			return values, pages, err
		}
		pages++
		if page.Number != pages {
			t.Fatalf("page %d has number %d", pages, page.Number)
		}
		for _, row := range rowsOf(t, page) {
			values = append(values, row[0])
		}
		if page.Last {
			return values, pages, nil
		}
		at = page.Next
	}
}

func rowsOf(t testing.TB, page *Page) []Row {
	t.Helper()
	var rows []Row
	for row, err := range page.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) != page.Count {
		t.Fatalf("got %d rows, and the count is %d", len(rows), page.Count)
	}
	return rows
}

// mustFail checks the code of an error and returns it.
func mustFail(t testing.TB, err error, code string) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *Error of code %s", err, code)
	}
	if e.Code != code {
		t.Fatalf("got code %s (%v, cause %v), want %s", e.Code, e, e.Err, code)
	}
	return e
}

// wantCode is mustFail for a test that needs no more of the error.
func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	_ = mustFail(t, err, code)
}

// ids is what rows 1 to n give for define.
func ids(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return out
}

// rowsJSON writes rows from to to, both included, as an array.
func rowsJSON(from, to int) string {
	out := "["
	for i := from; i <= to; i++ {
		if i > from {
			out += ","
		}
		out += fmt.Sprintf(`{"id":%d}`, i)
	}
	return out + "]"
}

// fakeBook is a Book that answers what it is told and notes what it hears.
type fakeBook struct {
	mu       sync.Mutex
	deny     error
	acquired []string
	learned  []int
	rejected int
	tokens   []string // the next credential of each authorization; the last one stays
	inQuery  bool
}

func (b *fakeBook) Acquire(_ context.Context, domain string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deny != nil {
		return b.deny
	}
	b.acquired = append(b.acquired, domain)
	return nil
}

func (b *fakeBook) Learn(_ context.Context, _ string, status int, _ http.Header) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learned = append(b.learned, status)
	return nil
}

func (b *fakeBook) Authorize(_ context.Context, req *http.Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tokens) == 0 {
		return nil
	}
	if b.inQuery {
		query := req.URL.Query()
		query.Set("api_key", b.tokens[0])
		req.URL.RawQuery = query.Encode()
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+b.tokens[0])
	return nil
}

func (b *fakeBook) Rejected(*http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rejected++
	if len(b.tokens) > 1 {
		b.tokens = b.tokens[1:]
	}
}

// asked keeps the queries of a server's requests in order.
type askedFor struct {
	mu      sync.Mutex
	queries []string
}

func (a *askedFor) note(r *http.Request) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries = append(a.queries, r.URL.RawQuery)
	return r.URL.Query()
}

func (a *askedFor) want(t *testing.T, queries ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.queries, queries) {
		t.Errorf("asked for %q, want %q", a.queries, queries)
	}
}
