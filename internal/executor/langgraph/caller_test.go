package langgraph

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

const callerKey = "vk-31415926"

// C-03, C-35: every request of a run and of its cancellation carries the key of
// the caller, if the definition says so; the account is in the metadata, and the
// key is neither there nor in what is remembered.
func TestCallerKeyGoesWithEveryRequest(t *testing.T) {
	key, err := runner.NewKey("TEAM_KEY", callerKey)
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"callerKey: {}": "Bearer " + callerKey, keyed: ""} {
		s, b := newStub(t), &book{}
		var mu sync.Mutex
		requests := 0
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			requests++
			if got := r.Header.Get("Authorization"); got != want {
				t.Errorf("%s %s: %q, want %q", r.Method, r.URL, got, want)
			}
			mu.Unlock()
			s.serve(w, r)
		}))
		p := connect(t, front.URL, setting)
		r := runOf(t, `{}`)
		r.Caller = runner.Caller{AccountID: "b1", Key: key}
		if result := must(t, p, r, b); !result.OK {
			t.Errorf("%+v", result)
		}
		s.fail("GET threads/run", says(200, `{"run_id":"r1","status":"running"}`))
		if err := p.Cancel(t.Context(), r); err != nil {
			t.Error(err)
		}
		front.Close()
		if requests < 10 {
			t.Errorf("%d requests", requests)
		}
		for _, runs := range s.runs {
			if runs[0].Metadata[metaAccount] != "b1" {
				t.Errorf("metadata %v", runs[0].Metadata)
			}
			for _, value := range runs[0].Metadata {
				if text, ok := value.(string); ok && strings.Contains(text, callerKey) {
					t.Errorf("metadata %v", runs[0].Metadata)
				}
			}
		}
		for _, remote := range b.remotes {
			if strings.Contains(string(remote), callerKey) {
				t.Errorf("remembered %s", remote)
			}
		}
	}
}
