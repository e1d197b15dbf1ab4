package demo

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/examples"
)

// rooms are the folders and files of the demo's server.
type rooms struct {
	connections string // folder
	provider    string // file
}

// change is a text of an example and what stands in its place here.
type change struct{ from, to string }

// furnish lays out what the server reads at its start: the files of the
// examples, with the addresses of this demo.
func furnish(dir string, out outside) (r rooms, err error) {
	r = rooms{connections: filepath.Join(dir, "connections"), provider: filepath.Join(dir, "providers", "prices.yaml")}
	for _, folder := range []string{filepath.Join(r.connections, "inbox"), filepath.Dir(r.provider)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return r, fmt.Errorf("make the folders of the demo: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(r.provider), "prices.key"), []byte(marketKey+"\n"), 0o600); err != nil {
		return r, fmt.Errorf("write the key of the market: %w", err)
	}
	for _, file := range []struct {
		from    fs.FS
		name    string
		to      string
		changes []change
	}{
		{examples.Letters, "letters/connections.yaml", filepath.Join(r.connections, "letters.yaml"), nil},
		{examples.Orders, "orders/connections.yaml", filepath.Join(r.connections, "orders.yaml"), []change{{"http://127.0.0.1:8097", out.desk.url}}},
		{examples.Poet, "poet/executors.yaml", filepath.Join(r.connections, "executors.yaml"), []change{{"http://127.0.0.1:8098", out.poet.url}}},
		{examples.Prices, "prices/provider.yaml", r.provider, []change{
			{"127.0.0.1:8099", out.market.host},
			{"limit: 60", fmt.Sprintf("limit: %d", marketLimit)}, {"period: 1m", "period: " + marketPeriod.String()},
			{"${PRICES_KEY}", "file:prices.key"},
		}},
	} {
		text, err := example(file.from, file.name, file.changes...)
		if err == nil {
			err = os.WriteFile(file.to, []byte(text), 0o600)
		}
		if err != nil {
			return r, fmt.Errorf("lay out the examples: %w", err)
		}
	}
	return r, nil
}

// example is a file of the examples with some texts changed. That one of them
// is not there is an error, so that the two cannot drift apart unseen.
func example(from fs.FS, name string, changes ...change) (string, error) {
	raw, err := fs.ReadFile(from, name)
	if err != nil {
		return "", err
	}
	text := string(raw)
	for _, c := range changes {
		if !strings.Contains(text, c.from) {
			return "", fmt.Errorf("the example %s has no %q", name, c.from)
		}
		text = strings.ReplaceAll(text, c.from, c.to)
	}
	return text, nil
}
