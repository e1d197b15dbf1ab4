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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		switch name {
		case "pawl_queue_due", "pawl_hook_deliveries_total", "pawl_otlp_spans_total": // only while something waits, was delivered, or there is a collector
			continue
		}
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("there is no %s", name)
		}
	}
}
