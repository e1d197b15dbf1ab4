package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// busy is a workflow whose producer waits for the answer of another end.
const busy = `export default {
	name: %q, topics: { told: {} },
	producers: { ask: { publishes: ["told"], schedule: { interval: "24h" }, handler: async (ctx) => { await ctx.tools.far.get({ path: "/" }); } } },
	consumers: { hear: { subscribe: ["told"], prepare: async () => ({ reservations: [], data: {} }), mutate: async () => {}, next: async () => {} } },
};`

// A-58, surface 1: --workers is how many workflows run at once, be it fewer or
// more than the default.
func TestAsManyWorkflowsRunAtOnceAsThereAreWorkers(t *testing.T) {
	for _, workers := range []int{2, Default().Workers + 1} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			pgtest.Both(t, func(t *testing.T, url string) {
				var mu sync.Mutex
				now, most, done, hold := 0, 0, 0, false
				gate := make(chan struct{})
				upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					now++
					most = max(most, now)
					wait := hold
					mu.Unlock()
					if wait {
						select {
						case <-gate:
						case <-r.Context().Done():
						}
					}
					mu.Lock()
					now--
					done++
					mu.Unlock()
				}))
				t.Cleanup(upstream.Close)
				cfg := configOf(t, url)
				cfg.Workers, cfg.ConnectionDir = workers, t.TempDir()
				connection := "kind: connection\nname: far\ntype: http\nbaseUrl: " + upstream.URL + "\n"
				if err := os.WriteFile(filepath.Join(cfg.ConnectionDir, "far.yaml"), []byte(connection), 0o600); err != nil {
					t.Fatal(err)
				}
				r := launch(t, cfg)
				all := workers + 2
				for i := range all {
					name := fmt.Sprint("busy", i)
					r.call("PUT", "/api/v1/workflows/"+name, map[string]any{"script": fmt.Sprintf(busy, name), "filename": name + ".workflow.js"})
				}
				reads := func(n *int) int { mu.Lock(); defer mu.Unlock(); return *n }
				var lanes struct{ Items []struct{ Status string } }
				eventually(t, "all ran once", func() bool {
					r.read("/api/v1/lanes", &lanes)
					return reads(&done) == all && !slices.ContainsFunc(lanes.Items, func(l struct{ Status string }) bool { return l.Status != "Idle" })
				})
				mu.Lock()
				most, hold = 0, true
				mu.Unlock()
				for i := range all {
					r.call("POST", fmt.Sprint("/api/v1/workflows/busy", i, "/run"), nil)
				}
				eventually(t, "all workers are at work", func() bool { return reads(&now) >= workers })
				for range all {
					gate <- struct{}{}
				}
				if got := reads(&most); got != workers {
					t.Errorf("%d at once, want %d", got, workers)
				}
				r.stop()
			})
		})
	}
}
