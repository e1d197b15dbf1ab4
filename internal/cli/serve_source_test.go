package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// write puts a file into the folder of the server.
func (h *house) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// pricesServer is an API with two rows, of which one does not fit.
func pricesServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[{"id":1,"close":2.5},{"id":2,"close":"n/a"}],"next":null}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// The commands and the API of this version fit each other: sources.
func TestSourceFromItsFileToItsEnd(t *testing.T) {
	s := pricesServer(t)
	h := serve(t, "--allow-private", "127.0.0.0/8")
	defer h.end()
	text := upstreamSource(s.URL) + "labels: {team: data}\n"
	h.write("prices.yaml", text)
	h.shows([]string{"apply", "-f", ".", "--dry-run"}, "source prices created (dry run)")
	h.pawl("get", "source", "prices").expect(t, pawl.ExitNotFound)
	h.shows([]string{"apply", "-f", "prices.yaml"}, "source prices created\n")
	h.shows([]string{"apply", "-f", "prices.yaml"}, "source prices unchanged\n")
	h.write("prices.yaml", strings.Replace(text, "schedule: daily", "schedule: hourly", 1))
	h.shows([]string{"apply", "-f", "prices.yaml", "--diff"}, "source prices updated\n", "-  interval: 1d", "+  interval: 1h")

	h.until("committed", "get", "runs", "--source", "prices")
	h.shows([]string{"get", "rows", "prices"}, "CLOSE", "2.5")
	h.shows([]string{"get", "rejects", "prices"}, "prices", "n/a")
	h.shows([]string{"get", "sources", "-o", "wide", "-l", "team=data"}, "prices", "Idle", "127.0.0.1")
	h.shows([]string{"describe", "source", "prices"}, "Its rows are of", "1 written since it was made", "Conditions:", "committed", "team=data")
	h.shows([]string{"why", "source", "prices"}, "The source prices is idle.", "Conditions:")
	h.shows([]string{"next", "--hours", "2"}, "prices", "source")
	h.shows([]string{"pause", "-l", "team=data"}, "source prices paused")
	h.pawl("run", "source", "prices").expect(t, pawl.ExitRefused, "(paused)")
	h.shows([]string{"resume", "source", "prices"}, "source prices resumed")
	h.shows([]string{"reset", "source", "prices", "--all"}, "source prices reset")
	h.until("source prices will run now", "run", "source", "prices")
	h.pawl("describe", "source", "price").expect(t, pawl.ExitNotFound, "prices")
	h.until("source prices deleted, with 1 row", "delete", "source", "prices", "--yes")
	h.pawl("get", "source", "prices").expect(t, pawl.ExitNotFound)
}

// The commands and the API of this version fit each other: schedules, grants
// and backfills.
func TestScheduleFromItsFileToItsEnd(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true,"output":{"line":"leaves"},"traceId":"t1","usage":[{"unit":"u1","model":"m-1","inputTokens":3,"outputTokens":4,"costUsd":0.5}]}`)
	}))
	defer s.Close()
	tools := folder(t, map[string]string{"agents.yaml": "kind: executor\nname: agents\ntype: http\ngraphs: {poet: {url: \"" + s.URL + "/poet\"}}\n"})
	h := serve(t, "--allow-private", "127.0.0.0/8", "--connection-dir", tools)
	defer h.end()
	text := strings.Replace(poetYAML, "langgraph:poet", "agents:poet", 1)
	h.write("poet.yaml", text)
	h.shows([]string{"apply", "-f", ".", "--dry-run"}, "schedule morning-poet created (dry run)")
	h.pawl("get", "schedule", "morning-poet").expect(t, pawl.ExitNotFound)
	h.shows([]string{"apply", "-f", "."}, "schedule morning-poet created\n")
	h.shows([]string{"apply", "-f", "."}, "schedule morning-poet unchanged\n")
	h.write("poet.yaml", strings.Replace(text, "autumn", "winter", 1))
	h.shows([]string{"apply", "-f", ".", "--dry-run"}, "schedule morning-poet updated (dry run)\n", "-  topic: autumn", "+  topic: winter")
	h.shows([]string{"grant", "list"}, "agents:poet", "active")

	h.shows([]string{"run", "schedule", "morning-poet"}, "schedule morning-poet will run now")
	h.until("success", "get", "slots", "morning-poet", "--trigger", "manual")
	h.shows([]string{"get", "receipts", "--schedule", "morning-poet"}, "0.5 USD", "m-1")
	h.shows([]string{"get", "runs", "--schedule", "morning-poet"}, "committed")
	h.shows([]string{"describe", "schedule", "morning-poet"}, "runs the graph agents:poet.", "Next instants", "0.5 USD", "Conditions:")
	h.shows([]string{"why", "schedule", "morning-poet"}, "morning-poet", "Conditions:")
	h.shows([]string{"next", "--hours", "25"}, "morning-poet", "schedule")
	h.shows([]string{"backfill", "morning-poet", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-03T00:00:00Z", "--per-minute", "600", "--yes"}, "done: 2 succeeded, 0 failed")

	h.shows([]string{"pause", "schedule", "morning-poet"}, "paused")
	h.shows([]string{"get", "schedules"}, "paused")
	h.pawl("run", "schedule", "morning-poet").expect(t, pawl.ExitRefused, "(paused)")
	h.shows([]string{"resume", "schedule", "morning-poet"}, "resumed")
	made := h.pawl("grant", "create", "--graph", "agents:poet", "--usd-per-day", "1.5", "--expires", "1d")
	made.expect(t, pawl.ExitDone)
	h.shows([]string{"describe", "grant", strings.TrimSpace(made.stdout)}, "1.5 USD a day", "It is active.")
	h.shows([]string{"grant", "revoke", strings.TrimSpace(made.stdout)}, "revoked")
	h.shows([]string{"get", "grants"}, "revoked")
	h.shows([]string{"delete", "schedule", "morning-poet", "--yes"}, "schedule morning-poet deleted; the grant that was made for it is revoked")
	h.pawl("describe", "schedule", "morning-poet").expect(t, pawl.ExitNotFound)
}

// follow runs a command that goes on until it has shown the words, each after
// something was done.
func (h *house) follow(args []string, steps ...func() (word string)) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	p, stdout, stderr := h.process(h.t, args...)
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	for _, step := range steps {
		stdout.await(ctx, h.t, step())
	}
	cancel()
	if code := <-ended; code != pawl.ExitDone {
		h.t.Errorf("%v: exit code %d: %s", args, code, stderr)
	}
}

func TestWatchOfSourcesAndSchedulesOfARealServer(t *testing.T) {
	s := pricesServer(t)
	h := serve(t, "--allow-private", "127.0.0.0/8")
	defer h.end()
	h.write("all.yaml", upstreamSource(s.URL)+"---\n"+strings.Replace(poetYAML, "langgraph:poet", "workflow:poet", 1))
	h.shows([]string{"apply", "all.yaml"}, "source prices created", "schedule morning-poet created")
	h.follow([]string{"get", "sources", "-w"},
		func() string { return "Idle" },
		func() string { h.shows([]string{"pause", "source", "prices"}, "paused"); return "Stopped" })
	h.follow([]string{"get", "schedule", "morning-poet", "-w"},
		func() string { return "enabled" },
		func() string { h.shows([]string{"pause", "schedule", "morning-poet"}, "paused"); return "paused" })
}
