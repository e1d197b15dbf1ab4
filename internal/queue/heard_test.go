package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// What a node hears of tasks that workers of users serve, it passes on, each once and no
// other line with them; and how their jobs end is counted.
func TestANodePassesOnWhatItHearsOfTasks(t *testing.T) {
	db, err := store.Open(t.Context(), pgtest.SQLite(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var heard []string
	registry := prometheus.NewRegistry()
	q, err := New(Config{DB: db, Node: store.Node{ID: "n"}, Served: func(task string, _ Chance) { heard = append(heard, task) }, Metrics: NewMetrics(registry)})
	if err != nil {
		t.Fatal(err)
	}
	q.hear("d 0 0 1\nt mail\nc 7\nl 0\nt other.task\n" + msgChanged)
	if want := []string{"mail", "other.task"}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
	now := time.Now()
	for _, v := range []store.Verdict{store.Done, store.Fail} {
		q.ServedEnded(store.Finished{Job: &store.Job{Task: "mail"}, Verdict: v, StartedAt: now, EndedAt: now})
	}
	ended := map[string]float64{}
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if !strings.Contains(family.GetName(), "finished") {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				ended[l.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	if ended["mail"] != 2 || ended["succeeded"] != 1 || ended["failed"] != 1 {
		t.Errorf("counted %v", ended)
	}
}
