package examples_test

import (
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/examples"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/quota"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/tool"
)

// read is a file of an example.
func read(t *testing.T, from fs.FS, name string) []byte {
	t.Helper()
	text, err := fs.ReadFile(from, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// place puts a file of an example into a folder of its own.
func place(t *testing.T, from fs.FS, name string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(path, read(t, from, name), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// What a reader copies out of the documentation is what the tests ran.
func TestTheDocumentationShowsTheExamples(t *testing.T) {
	for _, c := range []struct {
		from      fs.FS
		name, doc string
	}{
		{examples.Prices, "prices/prices.yaml", "sources.md"},
		{examples.Prices, "prices/provider.yaml", "sources.md"},
		{examples.Poet, "poet/poet.yaml", "schedules.md"},
	} {
		doc, err := os.ReadFile(filepath.Join("..", "docs", c.doc))
		if err != nil {
			t.Fatal(err)
		}
		text := string(read(t, c.from, c.name))
		text = text[strings.Index(text, "kind:"):] // what is above it is for readers of the file
		if !strings.Contains(string(doc), text) {
			t.Errorf("docs/%s does not show %s as it is", c.doc, c.name)
		}
	}
}

func TestTheSourceOfPricesIsValidAndHasItsProvider(t *testing.T) {
	list, err := spec.Parse("prices.yaml", read(t, examples.Prices, "prices/prices.yaml"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	d := list[0]
	if d.Pagination() != "page" || d.Incremental == nil || d.Write.Mode != spec.Upsert {
		t.Errorf("it is fetched by %s, incremental %v, written by %s", d.Pagination(), d.Incremental, d.Write.Mode)
	}
	_, file := place(t, examples.Prices, "prices/provider.yaml")
	providers, err := quota.Load([]string{file}, nil, func(name string) string { return map[string]string{"PRICES_KEY": "k"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := providers.Find(quota.Domain(u))
	if !ok || p.Limit != 60 || p.Auth != quota.AuthAPIKey {
		t.Errorf("the provider of %s is %v, %v", u.Host, p, ok)
	}
}

func TestTheOrdersHaveConnectionsOfWhichOneAsks(t *testing.T) {
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	dir, _ := place(t, examples.Orders, "orders/connections.yaml")
	set, err := tool.Load(dir, tool.Env{Getenv: func(string) string { return "" }, HTTP: client, CheckOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]tool.Policy{"desk": tool.Allow, "largeDesk": tool.Ask} {
		target, err := set.Lookup(name, "post")
		if err != nil || target.Policy != want || !target.Method.Reconciles {
			t.Errorf("%s.post: policy %s, %+v, %v", name, target.Policy, target.Method, err)
		}
	}
}

func TestTheScheduleOfPoemsIsValidAndHasItsExecutor(t *testing.T) {
	list, err := graphspec.Parse("poet.yaml", read(t, examples.Poet, "poet/poet.yaml"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	dir, _ := place(t, examples.Poet, "poet/executors.yaml")
	set, err := executor.Load(dir, executor.Env{Getenv: func(string) string { return "" }, HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	if _, name, err := set.Lookup(list[0].GraphID); err != nil || name != "poet" {
		t.Errorf("the graph %s is found as %q, %v", list[0].GraphID, name, err)
	}
}
