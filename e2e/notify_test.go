package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// somebody is told when a workflow needs attention, once, and when it
// goes on again; also when the server is killed in between.
func TestPeopleAreToldByWebhook(t *testing.T) {
	var mu sync.Mutex
	told := map[string]string{} // what, by webhook-id
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string `json:"type"`
		}
		_ = json.NewDecoder(r.Body).Decode(&event) // a strange body shows below
		mu.Lock()
		defer mu.Unlock()
		told[r.Header.Get("webhook-id")] = event.Type
	}))
	t.Cleanup(hook.Close)
	heard := func() (list []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, what := range told {
			list = append(list, what)
		}
		slices.Sort(list)
		return list
	}
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	s.kill()
	s.args = append(s.args, "--notify-webhook", hook.URL)
	s.start()
	s.deploy(strings.Replace(clerk, "const [order] = await", "null.x; const [order] = await", 1))
	s.order("one")
	s.eventually("people are told", func() bool { return slices.Equal(heard(), []string{"lane.needs_attention"}) })
	s.kill()
	s.start()
	s.deploy(clerk)
	s.eventually("people are told that it goes on", func() bool {
		return slices.Equal(heard(), []string{"lane.needs_attention", "lane.recovered"})
	})
}
