package langgraph

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLimit bounds every wait of a test that should end sooner by itself.
const testLimit = 30 * time.Second

// connect makes the provider of a server, as a definition would.
func connect(t *testing.T, url string, more ...string) *Provider {
	t.Helper()
	allow, err := outbound.ParsePrefixes([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := settingsOf(t, client, strings.Join(append([]string{"url: " + url}, more...), "\n"))
	p, ok := New(s)
	s.Unknown()
	if faults := s.Fields(); !ok || len(faults) > 0 {
		t.Fatalf("the definition is refused: %v", faults)
	}
	return p.(*Provider)
}

func settingsOf(t *testing.T, client *outbound.Client, text string) *connector.Settings {
	t.Helper()
	doc, err := definition.ReadSettings("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	env := connector.Env{HTTP: client, Getenv: func(string) string { return "lsv2-secret" }}
	return connector.NewSettings(doc, env)
}

// book keeps the events of a run.
type book struct {
	mu       sync.Mutex
	progress []string
	usage    []runner.Usage
	remotes  []json.RawMessage
	see      func(runner.Event) error // called with every event; may be nil
}

func (b *book) emit(e runner.Event) error {
	b.mu.Lock()
	switch e.Kind {
	case runner.KindProgress:
		b.progress = append(b.progress, e.Text)
	case runner.KindUsage:
		b.usage = append(b.usage, *e.Usage)
	case runner.KindRemote:
		b.remotes = append(b.remotes, e.Remote)
	}
	see := b.see
	b.mu.Unlock()
	if see != nil {
		return see(e)
	}
	return nil
}

// remote is what would be given to the next call.
func (b *book) remote() json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.remotes) == 0 {
		return nil
	}
	return b.remotes[len(b.remotes)-1]
}

func (b *book) memory(t *testing.T) memory {
	t.Helper()
	m, err := remember(runner.Run{Remote: b.remote()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runOf is the first attempt of a run of its own.
func runOf(t *testing.T, input string) runner.Run {
	id := "run-" + strings.ReplaceAll(t.Name(), "/", "-")
	return runner.Run{RunID: id, Attempt: 1, ScheduleID: "s1", GraphID: "langgraph:demo", Name: "demo", Key: "key of " + id, Input: json.RawMessage(input)}
}

// must runs a graph that ends with a result.
func must(t *testing.T, p *Provider, r runner.Run, b *book) runner.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	result, err := p.Run(ctx, r, b.emit)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return result
}
