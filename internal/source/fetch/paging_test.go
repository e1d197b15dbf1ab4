package fetch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// pager serves rows 1 to total by an offset and a limit, and whatever more
// there is to say about the page.
func pager(t *testing.T, total int, seen *askedFor, start func(q map[string]int) int, more func(from, to int) string) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		numbers := map[string]int{}
		for name, values := range seen.note(r) {
			numbers[name], _ = strconv.Atoi(values[0])
		}
		from := start(numbers)
		to := min(from+numbers["limit"], total)
		_, _ = fmt.Fprintf(w, `{"data":%s%s}`, rowsJSON(from+1, to), more(from, to))
	})
}

// Every style of pages gives all rows, once and in order. B-36
func TestOffsetPaginationReadsAllRows(t *testing.T) {
	byPage := func(q map[string]int) int { return (q["page"] - 1) * q["limit"] }
	byRow := func(q map[string]int) int { return q["skip"] + q["from"] }
	nothing := func(int, int) string { return "" }
	tests := []struct {
		name    string
		p       spec.OffsetPagination
		total   int
		start   func(map[string]int) int
		more    func(from, to int) string
		queries []string
	}{
		{
			"pages, until one is not full",
			spec.OffsetPagination{PageParam: "page", LimitParam: "limit", Limit: 3, FirstPage: 1},
			7, byPage, nothing, []string{"limit=3&page=1", "limit=3&page=2", "limit=3&page=3"},
		},
		{
			"pages from 0, full to the last",
			spec.OffsetPagination{PageParam: "page", LimitParam: "limit", Limit: 2, FirstPage: 0},
			4, func(q map[string]int) int { return q["page"] * q["limit"] }, nothing,
			[]string{"limit=2&page=0", "limit=2&page=1", "limit=2&page=2"},
		},
		{
			"a parameter of pages that by its name counts rows",
			spec.OffsetPagination{PageParam: "skip", LimitParam: "limit", Limit: 3, FirstPage: 1},
			5, byRow, nothing, []string{"limit=3&skip=0", "limit=3&skip=3"},
		},
		{
			"rows, with a total after them",
			spec.OffsetPagination{OffsetParam: "from", LimitParam: "limit", Limit: 2, TotalPath: "meta.total"},
			4, byRow, func(int, int) string { return `,"meta":{"total":4}` },
			[]string{"from=0&limit=2", "from=2&limit=2"},
		},
		{
			"a total as text",
			spec.OffsetPagination{OffsetParam: "from", LimitParam: "limit", Limit: 2, TotalPath: "total"},
			4, byRow, func(int, int) string { return `,"total":"4"` },
			[]string{"from=0&limit=2", "from=2&limit=2"},
		},
		{
			"has more, although the server caps the limit",
			spec.OffsetPagination{OffsetParam: "from", LimitParam: "limit", Limit: 2, HasMorePath: "hasMore"},
			3, byRow, func(_, to int) string { return fmt.Sprintf(`,"hasMore":%t`, to < 3) },
			[]string{"from=0&limit=2", "from=2&limit=2"},
		},
		{
			"a total of nothing in place of rows",
			spec.OffsetPagination{OffsetParam: "from", LimitParam: "limit", Limit: 2, TotalPath: "total"},
			0, byRow, func(int, int) string { return `,"total":0` }, []string{"from=0&limit=2"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var seen askedFor
			server := pager(t, test.total, &seen, test.start, test.more)
			d := define(server.URL)
			d.OffsetPagination = &test.p
			values, _, err := all(t, newFetcher(t, nil), Ask{Definition: d})
			if err != nil {
				t.Fatal(err)
			}
			if len(values) != test.total || (test.total > 0 && !reflect.DeepEqual(values, ids(test.total))) {
				t.Errorf("got %v, want 1 to %d", values, test.total)
			}
			seen.want(t, test.queries...)
		})
	}
}

func TestCursorPaginationFollowsTextAndNumbers(t *testing.T) {
	for _, cursors := range [][]string{{`"b c"`, `"d"`, `null`}, {`17`, `18`, `""`}, {`"x"`, `false`}} {
		var seen askedFor
		page := 0
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			seen.note(r)
			// The cursor comes before the rows here and after them in other tests.
			_, _ = fmt.Fprintf(w, `{"page":{"next":%s},"data":%s}`, cursors[page], rowsJSON(page+1, page+1))
			page++
		})
		d := define(server.URL + "?x=1")
		d.Params = []spec.Pair{{Name: "symbol", Value: "A&B"}}
		d.CursorPagination = &spec.CursorPagination{CursorParam: "after", NextCursorPath: "page.next", LimitParam: "n", Limit: 5}
		values, pages, err := all(t, newFetcher(t, nil), Ask{Definition: d})
		if err != nil || pages != len(cursors) || !reflect.DeepEqual(values, ids(pages)) {
			t.Fatalf("got %v in %d pages, %v", values, pages, err)
		}
		if cursors[0] == `"b c"` {
			seen.want(t, "n=5&symbol=A%26B&x=1", "after=b+c&n=5&symbol=A%26B&x=1", "after=d&n=5&symbol=A%26B&x=1")
		}
	}
}

func TestLinkPaginationFollowsHeaderAndBody(t *testing.T) {
	tests := []struct {
		name   string
		p      spec.LinkPagination
		answer func(w http.ResponseWriter, host string, page int)
	}{
		{"the header Link", spec.LinkPagination{Header: "Link"}, func(w http.ResponseWriter, host string, page int) {
			if page < 3 {
				w.Header().Set("Link", fmt.Sprintf(`<http://%s/?page=1>; rel="first", <http://%s/?page=%d>; title="a, b"; rel="last next"`, host, host, page+1))
			}
			_, _ = io.WriteString(w, `{"data":`+rowsJSON(page, page)+`}`)
		}},
		{"a header with a URL", spec.LinkPagination{Header: "X-Next"}, func(w http.ResponseWriter, _ string, page int) {
			if page < 3 {
				w.Header().Set("X-Next", fmt.Sprintf(`/?page=%d`, page+1))
			}
			_, _ = io.WriteString(w, `{"data":`+rowsJSON(page, page)+`}`)
		}},
		{"a path, after the rows", spec.LinkPagination{NextPath: "links.next"}, func(w http.ResponseWriter, host string, page int) {
			link := "null"
			if page < 3 {
				link = fmt.Sprintf(`"http:\/\/%s\/?page=%d#top"`, host, page+1)
			}
			_, _ = fmt.Fprintf(w, `{"data":%s,"links":{"next":%s}}`, rowsJSON(page, page), link)
		}},
		{"a path, relative", spec.LinkPagination{NextPath: "next"}, func(w http.ResponseWriter, _ string, page int) {
			link := ""
			if page < 3 {
				link = fmt.Sprintf("?page=%d", page+1)
			}
			_, _ = fmt.Fprintf(w, `{"data":%s,"next":%q}`, rowsJSON(page, page), link)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				test.answer(w, r.Host, max(page, 1))
			})
			d := define(server.URL)
			d.LinkPagination = &test.p
			values, pages, err := all(t, newFetcher(t, nil), Ask{Definition: d})
			if err != nil || pages != 3 || !reflect.DeepEqual(values, ids(3)) {
				t.Fatalf("got %v in %d pages, %v", values, pages, err)
			}
		})
	}
}

// A fetch that is cut off goes on at the stored position.
func TestPositionSurvivesJSON(t *testing.T) {
	var seen askedFor
	server := pager(t, 5, &seen, func(q map[string]int) int { return q["from"] }, func(int, int) string { return "" })
	d := define(server.URL)
	d.OffsetPagination = &spec.OffsetPagination{OffsetParam: "from", LimitParam: "limit", Limit: 2}
	page := one(t, d)
	stored, err := json.Marshal(page.Next)
	if err != nil {
		t.Fatal(err)
	}
	var from Position
	if err := json.Unmarshal(stored, &from); err != nil || !reflect.DeepEqual(from, page.Next) {
		t.Fatalf("%s came back as %+v, %v", stored, from, err)
	}
	again, err := next(t, newFetcher(t, nil), Ask{Definition: d}, from)
	if err != nil || again.Number != 2 || rowsOf(t, again)[0][0] != int64(3) {
		t.Fatalf("got %+v, %v", again, err)
	}
	seen.want(t, "from=0&limit=2", "from=2&limit=2")
}

func TestIncrementalAsksAndMarks(t *testing.T) {
	var seen askedFor
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.note(r)
		_, _ = io.WriteString(w, `{"data":[{"id":1,"at":"2026-01-02T00:00:00Z"},{"id":2,"at":"2026-01-02T01:00:00+02:00"},
			{"id":"no","at":"2030-01-01T00:00:00Z"},{"id":3,"at":null},{"id":4}]}`)
	})
	d := define(server.URL)
	d.Incremental = &spec.Incremental{Param: "since", CursorPath: "at"}
	page, err := next(t, newFetcher(t, nil), Ask{Definition: d, Since: "2026-01-01"}, Position{})
	if err != nil {
		t.Fatal(err)
	}
	// The mark of a row that did not fit does not count: it may come again, mended.
	if page.Mark != "2026-01-02T00:00:00Z" || page.RejectCount != 1 {
		t.Errorf("got mark %q and %d rejects", page.Mark, page.RejectCount)
	}
	seen.want(t, "since=2026-01-01")
}

// A circle of pages ends in an error. (Loop guard)
func TestLoopsEndInAnError(t *testing.T) {
	cursor := &spec.CursorPagination{CursorParam: "c", NextCursorPath: "next"}
	tests := []struct {
		name   string
		change func(d *spec.Definition)
		body   func(call int, host string) string
		code   string
		calls  int
	}{
		{"the same cursor again", func(d *spec.Definition) { d.CursorPagination = cursor },
			func(n int, _ string) string { return fmt.Sprintf(`{"data":%s,"next":"same"}`, rowsJSON(n, n)) }, CodeLoop, 2},
		{"a circle of cursors", func(d *spec.Definition) { d.CursorPagination = cursor },
			func(n int, _ string) string { return fmt.Sprintf(`{"data":%s,"next":"%d"}`, rowsJSON(n, n), n%3) }, CodeLoop, 4},
		{"a cursor that never ends", func(d *spec.Definition) { d.CursorPagination = cursor; d.Response.MaxPages = 7 },
			func(n int, _ string) string { return fmt.Sprintf(`{"data":[],"next":"%d"}`, n) }, CodePageLimit, 7},
		{"the same page again", func(d *spec.Definition) {
			d.OffsetPagination = &spec.OffsetPagination{PageParam: "page", LimitParam: "limit", Limit: 2, FirstPage: 1}
		}, func(int, string) string { return `{"data":[{"id":1},{"id":2}]}` }, CodeLoop, 2},
		{"more and more of nothing", func(d *spec.Definition) {
			d.OffsetPagination = &spec.OffsetPagination{OffsetParam: "from", Limit: 2, HasMorePath: "more"}
		}, func(int, string) string { return `{"data":[],"more":true}` }, CodeLoop, 1},
		{"a link to itself", func(d *spec.Definition) { d.LinkPagination = &spec.LinkPagination{NextPath: "next"} },
			func(n int, host string) string {
				return fmt.Sprintf(`{"data":%s,"next":"http://%s/?p=1"}`, rowsJSON(n, n), host)
			}, CodeLoop, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls++
				_, _ = io.WriteString(w, test.body(calls, r.Host))
			})
			d := define(server.URL)
			test.change(&d)
			_, _, err := all(t, newFetcher(t, nil), Ask{Definition: d})
			e := mustFail(t, err, test.code)
			if e.Class != "logic" || calls != test.calls {
				t.Errorf("class %s after %d calls, want logic after %d", e.Class, calls, test.calls)
			}
		})
	}
}

func TestRepeatedCursorWithoutRowsIsTheEnd(t *testing.T) {
	calls := 0
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		_, _ = io.WriteString(w, []string{"", `{"data":[{"id":1}],"next":"z"}`, `{"data":[],"next":"z"}`}[calls])
	})
	d := define(server.URL)
	d.CursorPagination = &spec.CursorPagination{CursorParam: "c", NextCursorPath: "next"}
	values, pages, err := all(t, newFetcher(t, nil), Ask{Definition: d})
	if err != nil || pages != 2 || !reflect.DeepEqual(values, ids(1)) {
		t.Fatalf("got %v in %d pages, %v", values, pages, err)
	}
}

func TestSeenIsBounded(t *testing.T) {
	var p Position
	first := p
	for i := range 10 * maxSeen {
		p.remember(digest('c', strconv.Itoa(i)))
	}
	if len(p.Seen) != maxSeen || len(first.Seen) != 0 {
		t.Errorf("%d hashes are kept, and %d in the copy", len(p.Seen), len(first.Seen))
	}
	if !p.saw(digest('c', strconv.Itoa(10*maxSeen-1))) || p.saw(digest('c', "1")) {
		t.Error("the oldest are to be forgotten, not the latest")
	}
}

// A link that leaves the host is refused, because credentials must not travel.
func TestLinksStayOnTheirHost(t *testing.T) {
	links := map[string]string{
		"another host": "https://other.example/?page=2",
		"another port": "http://127.0.0.1:1/?page=2",
		"a file":       "file:///etc/passwd",
		"a user":       "http://user:pass@HOST/?page=2",
		"no scheme":    "//other.example/",
	}
	for name, link := range links {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, `{"data":[{"id":1}],"next":%q}`, strings.ReplaceAll(link, "HOST", r.Host))
			})
			d := define(server.URL)
			d.LinkPagination = &spec.LinkPagination{NextPath: "next"}
			_, _, err := all(t, newFetcher(t, nil), Ask{Definition: d})
			wantCode(t, err, CodeRedirect)
		})
	}
}

func TestLinkKeepsHomeAndMendsTheScheme(t *testing.T) {
	home, _ := http.NewRequest(http.MethodGet, "https://API.example.com/v1", nil)
	for link, want := range map[string]string{
		"https://api.example.com/v1?p=2":     "https://api.example.com/v1?p=2",
		"https://api.example.com:443/v1?p=2": "https://api.example.com:443/v1?p=2",
		"http://api.example.com/v1?p=2#x":    "https://api.example.com/v1?p=2",
		"http://api.example.com:8080/":       "",
		"https://api.example.com.evil.org/":  "",
	} {
		at, _ := http.NewRequest(http.MethodGet, link, nil)
		if !strings.Contains(link, "#") {
			at.URL.Fragment = ""
		}
		kept, err := keepHome(home.URL, at.URL)
		if want == "" {
			wantCode(t, err, CodeRedirect)
		} else if err != nil || kept.String() != want {
			t.Errorf("%s became %v, %v", link, kept, err)
		}
	}
}

// A server whose pages are smaller than what was asked for is read to its end,
// and one that refuses a page beyond its end, or knows no pages, is not taken
// for a failure.
func TestAServerMayMakeItsPagesSmaller(t *testing.T) {
	for name, beyond := range map[string]string{"empty": `[]`, "refused": "404", "same": "same"} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				switch {
				case beyond == "same":
					_, _ = io.WriteString(w, `[{"id":1},{"id":2}]`)
				case page <= 3:
					_, _ = fmt.Fprintf(w, `[{"id":%d},{"id":%d}]`, 2*page-1, 2*page)
				case beyond == "404":
					http.NotFound(w, r)
				default:
					_, _ = io.WriteString(w, beyond)
				}
			}))
			defer u.Close()
			d := spec.Definition{
				Name: "s", URL: u.URL, OffsetPagination: &spec.OffsetPagination{PageParam: "page", LimitParam: "limit", Limit: 100, FirstPage: 1},
				Response: spec.Response{Format: spec.JSON, Fields: []spec.Field{{Source: "id", Target: "id", Type: spec.Integer}}},
			}
			client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			f, rows, at := New(Options{Client: client}), 0, Position{}
			for {
				page, err := f.Next(t.Context(), Ask{Definition: d}, at)
				if err != nil {
					t.Fatal(err)
				}
				rows += page.Count
				_ = page.Close()
				if page.Last {
					break
				}
				at = page.Next
			}
			want := 6
			if beyond == "same" {
				want = 4 // the second page is the first one again, which its key makes one
			}
			if rows != want || calls > 4 {
				t.Errorf("%d rows came in %d calls, want %d", rows, calls, want)
			}
		})
	}
}
