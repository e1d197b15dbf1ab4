package e2e

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every metric that the guide tells people to watch is there.
func TestMetricsOfTheOperationsGuideExist(t *testing.T) {
	guide, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, "sqlite:.pawl/pawl.db")
	j := s.enqueue(map[string]any{"task": "log", "payload": map[string]any{"message": "hello"}})
	s.eventually("a job ran", func() bool { return s.job(j.ID).State == "succeeded" })
	names := regexp.MustCompile(`pawl_[a-z_]+[a-z]`).FindAllString(string(guide), -1)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "pawl_restored" }) // a database
	if len(names) < 9 {
		t.Fatalf("the guide names only %v", names)
	}
	text := s.text("/metrics")
	for _, name := range names {
		switch name {
		case "pawl_queue_due", "pawl_hook_deliveries_total", "pawl_otlp_spans_total", // only while something waits, was delivered, or there is a collector
			"pawl_lane_needs_attention", "pawl_mutations_open", "pawl_runs_total", "pawl_run_lateness_seconds", "pawl_slots_total", "pawl_source_last_success_timestamp_seconds", "pawl_source_rows_total", "pawl_spend_today_usd": // only of what is there
			continue
		}
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("there is no %s", name)
		}
	}
}

// What schedules do is counted where Prometheus asks.
func TestMetricsCountSlotsAndRuns(t *testing.T) {
	u := newUpstream(t)
	s := serve(t, "sqlite:.pawl/pawl.db")
	var made struct{ ID string }
	if status := s.call("POST", "/api/v1/schedules", map[string]any{"name": "ping", "cron": "0 9 1 1 *", "timezone": "UTC", "run": map[string]any{"url": u.URL + "/ping"}}, &made); status != http.StatusCreated {
		t.Fatalf("make a schedule: %d", status)
	}
	if status := s.call("POST", "/api/v1/schedules/"+made.ID+"/run", nil, nil); status != http.StatusAccepted {
		t.Fatalf("run it: %d", status)
	}
	s.eventually("slots and runs are counted", func() bool {
		text := s.text("/metrics")
		return strings.Contains(text, `pawl_slots_total{disposition="fired",lane="ping"}`) && strings.Contains(text, `pawl_runs_total{kind="schedule",lane="ping",outcome="committed"}`) &&
			strings.Contains(text, `pawl_run_lateness_seconds_count{kind="schedule"}`)
	})
}

// text is what a path answers.
func (s *server) text(path string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
