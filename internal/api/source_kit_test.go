package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
)

// outside is somebody else's server. Its address is unlimited under
// 127.0.0.1, and has a limit of two calls an hour under localhost.
type outside struct {
	*httptest.Server
	port    string
	entered chan struct{} // /slow was called
	release chan struct{} // closed: /slow answers

	mu    sync.Mutex
	asked []string // guarded by mu: paths and queries
}

func (o *outside) requests() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked)
}

func newOutside() *outside {
	o := &outside{entered: make(chan struct{}, 100), release: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/prices", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("page") {
		case "1", "":
			_, _ = fmt.Fprint(w, `{"items":[{"id":1,"close":1.5,"day":"2030-01-01","at":"2030-01-01T10:00:00Z","more":{"a":1}},{"id":2,"close":"n/a"},{"id":3,"close":3}],"more":true}`)
		case "2":
			_, _ = fmt.Fprint(w, `{"items":[{"id":4,"close":4},{"id":5,"close":5}],"more":false}`)
		default:
			_, _ = fmt.Fprint(w, `{"items":[],"more":false}`)
		}
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		o.entered <- struct{}{}
		select {
		case <-o.release:
		case <-r.Context().Done():
		}
		_, _ = fmt.Fprint(w, `{"items":[{"id":1,"close":1}],"more":false}`)
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/locked", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `<html>Hello</html>`) })
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked = append(o.asked, r.URL.String())
		o.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	u, _ := url.Parse(o.URL)
	o.port = u.Port()
	return o
}

// makeSources makes the service that the API speaks to.
func (r *rig) makeSources(feed *Feed) {
	r.t.Helper()
	r.outside = newOutside()
	r.t.Cleanup(r.outside.Close)
	provider := filepath.Join(r.t.TempDir(), "provider.yaml")
	text := fmt.Sprintf("kind: provider\ndomain: localhost:%s\nlimit: 2\nperiod: 1h\n", r.outside.port)
	if err := os.WriteFile(provider, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	providers, err := quota.Load([]string{provider}, nil, os.Getenv)
	if err != nil {
		r.t.Fatal(err)
	}
	inside, err := outbound.ParsePrefixes([]string{"127.0.0.0/8", "::1/128"})
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: inside})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	book := quota.NewBook(r.db, providers, client, nil)
	r.fetcher = fetch.New(fetch.Options{Client: client, Book: book})
	r.sources, err = source.New(source.Options{DB: r.db, Ledger: r.ledger, Fetcher: r.fetcher, Book: book, Spool: r.t.TempDir(), Host: r.host(feed)})
	if err != nil {
		r.t.Fatal(err)
	}
}

// fetching is a definition of a source that fetches from this path of the
// outside, two pages if there are any. Changes come in pairs of field and
// value.
func (r *rig) fetching(path string, changes ...any) map[string]any {
	d := map[string]any{
		"url": r.outside.URL + path, "table": "prices", "schedule": "hourly", "labels": map[string]any{"team": "data"},
		"response": map[string]any{"dataPath": "items", "fields": []any{
			map[string]any{"source": "id", "target": "id", "type": "integer"}, map[string]any{"source": "close", "target": "close", "type": "number"},
			map[string]any{"source": "day", "target": "day", "type": "date"}, map[string]any{"source": "at", "target": "at", "type": "timestamp"},
			map[string]any{"source": "more", "target": "more", "type": "json"},
		}},
		"write":            map[string]any{"key": []any{"id"}},
		"offsetPagination": map[string]any{"pageParam": "page", "limitParam": "limit", "limit": 3, "hasMorePath": "more"},
	}
	for i := 0; i < len(changes); i += 2 {
		d[changes[i].(string)] = changes[i+1] //nolint:forcetypeassert // of this file's callers
	}
	return d
}

// apply puts a definition in force.
func (r *rig) apply(name string, d map[string]any) {
	r.t.Helper()
	p := r.do("PUT", "/api/v1/sources/"+name, d)
	if p.status != http.StatusOK && p.status != http.StatusCreated {
		r.t.Fatalf("apply %s: %d %s", name, p.status, p.body)
	}
}

// applyPrices applies a source of four rows and waits until they are there.
func (r *rig) applyPrices(name string) {
	r.t.Helper()
	r.apply(name, r.fetching("/prices"))
	r.waitRuns("?kind=source&lane="+name+"&status=committed", 1)
}

func (r *rig) source(name string) (s client.Source) {
	r.t.Helper()
	r.do("GET", "/api/v1/sources/"+name, nil).want(http.StatusOK).into(&s)
	return s
}

// pricesYAML is a definition as a file has it.
func (r *rig) pricesYAML() string {
	return strings.ReplaceAll(`kind: source
name: prices
url: URL/prices
table: prices
schedule: hourly
response:
  dataPath: items
  fields: [{source: id, target: id, type: integer}]
write: {key: [id]}
`, "URL", r.outside.URL)
}
