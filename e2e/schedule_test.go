package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// poet is an executor that counts what it was asked for, by slot.
type poet struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string]int
	hold chan struct{} // nil: it answers at once
}

func newPoet(t *testing.T) *poet {
	p := &poet{keys: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.keys[r.Header.Get("Idempotency-Key")]++
		hold := p.hold
		p.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
				return
			}
		}
		var asked struct {
			RunID string `json:"runId"`
		}
		_ = json.Unmarshal(body, &asked)
		_, _ = io.WriteString(w, `{"ok":true,"output":{"poem":"autumn"},"traceId":"t-1","usage":[{"unit":"u1","model":"m","inputTokens":1,"outputTokens":2,"costUsd":0.01}]}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// slots is how many slots it was asked for.
func (p *poet) slots() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.keys)
}

// serveWith starts a server that knows the poet.
func serveWith(t *testing.T, database string, p *poet, folders ...string) *server {
	t.Helper()
	dir := t.TempDir()
	text := "kind: executor\nname: http\ntype: http\ngraphs: {poet: {url: \"" + p.URL + "/poet\", timeout: 1m}}\n"
	if err := os.WriteFile(filepath.Join(dir, "executors.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + addr, log: &logBuffer{}}
	s.args = []string{"serve", "--addr", addr, "--database", database, "--allow-private", "127.0.0.1/32", "--connection-dir", dir}
	s.args = append(s.args, folders...)
	s.start()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", s.url, s.log)
		}
	})
	return s
}

type slot struct {
	ScheduledFor time.Time `json:"scheduledFor"`
	Status       string    `json:"status"`
	Disposition  *string   `json:"disposition"`
	RunID        *string   `json:"runId"`
	AttemptCount int       `json:"attemptCount"`
	CostUSD      float64   `json:"costUsd"`
	Trigger      string    `json:"trigger"`
}

func (s *server) slots(id string) []slot {
	s.t.Helper()
	var page struct {
		Items []slot `json:"items"`
	}
	if status := s.call("GET", "/api/v1/schedules/"+id+"/slots?limit=100", nil, &page); status != http.StatusOK {
		s.t.Fatalf("slots: %d", status)
	}
	return page.Items
}

func (s *server) newSchedule(body map[string]any) string {
	s.t.Helper()
	var made struct {
		ID string `json:"id"`
	}
	if status := s.call("POST", "/api/v1/schedules", body, &made); status != http.StatusCreated || made.ID == "" {
		s.t.Fatalf("create answered %d", status)
	}
	return made.ID
}

// C-06, C-18, C-57, X-52, X-65: a slot whose server is killed while the graph
// runs is gone on with under the same key, is recorded once and charged once.
func TestAKilledSlotIsExecutedOnce(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		p := newPoet(t)
		p.hold = make(chan struct{})
		s := serveWith(t, database, p)
		id := s.newSchedule(map[string]any{"name": "poet", "graphId": "http:poet", "input": map[string]any{"topic": "autumn"}, "cron": "0 9 1 1 *", "timezone": "Europe/Berlin"})
		if status := s.call("POST", "/api/v1/schedules/"+id+"/run", nil, nil); status != http.StatusAccepted {
			t.Fatalf("run now answered %d", status)
		}
		s.eventually("the graph runs", func() bool { return p.slots() == 1 })
		var refusal struct {
			Code string `json:"code"`
		}
		if status := s.call("POST", "/api/v1/schedules/"+id+"/run", nil, &refusal); status != http.StatusConflict || refusal.Code != "run_active" {
			t.Errorf("a second run now was answered %d %s", status, refusal.Code)
		}
		s.kill()
		p.mu.Lock()
		close(p.hold)
		p.hold = nil
		p.mu.Unlock()
		s.start()
		var done slot
		s.eventually("the slot is closed", func() bool {
			for _, got := range s.slots(id) {
				if got.Trigger == "manual" && got.Status == "success" {
					done = got
					return true
				}
			}
			return false
		})
		if slots := p.slots(); slots != 1 || done.Disposition == nil || *done.Disposition != "fired" || done.CostUSD != 0.01 {
			t.Errorf("%d keys were sent, and the slot is %+v", slots, done)
		}
		var receipts struct {
			Items []struct {
				SourceReference string `json:"sourceReference"`
			} `json:"items"`
		}
		s.call("GET", "/api/v1/billing/receipts", nil, &receipts)
		if len(receipts.Items) != 1 || !strings.HasSuffix(receipts.Items[0].SourceReference, "/u1") {
			t.Errorf("the receipts are %+v", receipts.Items)
		}
	})
}

// C-24, C-26, C-27, C-69, X-60: the life of a schedule over HTTP; what is not
// valid changes nothing, a revoked grant skips the slot, and a deleted schedule
// is gone.
func TestTheLifeOfASchedule(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		p := newPoet(t)
		s := serveWith(t, database, p)
		for pointer, body := range map[string]map[string]any{
			"/cron":     {"name": "a", "graphId": "http:poet", "input": map[string]any{}, "cron": "61 * * * *", "timezone": "UTC"},
			"/timezone": {"name": "a", "graphId": "http:poet", "input": map[string]any{}, "cron": "* * * * *", "timezone": "Mars/Base"},
			"/graphId":  {"name": "a", "graphId": "http:*", "input": map[string]any{}, "cron": "* * * * *", "timezone": "UTC"},
		} {
			var problem struct {
				Errors []struct {
					Pointer string `json:"pointer"`
				} `json:"errors"`
			}
			if status := s.call("POST", "/api/v1/schedules", body, &problem); status != http.StatusUnprocessableEntity || len(problem.Errors) == 0 || problem.Errors[0].Pointer != pointer {
				t.Errorf("%s: %d %+v", pointer, status, problem)
			}
		}
		id := s.newSchedule(map[string]any{"name": "poet", "graphId": "http:poet", "input": map[string]any{}, "cron": "0 9 1 1 *", "timezone": "UTC"})
		var sch struct {
			ExecutionGrantID string     `json:"executionGrantId"`
			NextRunAt        *time.Time `json:"nextRunAt"`
		}
		s.call("GET", "/api/v1/schedules/"+id, nil, &sch)
		if sch.NextRunAt == nil || sch.NextRunAt.Month() != time.January || sch.ExecutionGrantID == "" {
			t.Fatalf("the schedule is %+v", sch)
		}
		if status := s.call("POST", "/api/v1/grants/"+sch.ExecutionGrantID+"/revoke", nil, nil); status != http.StatusOK {
			t.Errorf("revoke answered %d", status)
		}
		s.call("POST", "/api/v1/schedules/"+id+"/run", nil, nil)
		s.eventually("the slot is skipped", func() bool {
			for _, got := range s.slots(id) {
				if got.Disposition != nil && *got.Disposition == "skipped_grant" {
					return true
				}
			}
			return false
		})
		if slots := p.slots(); slots != 0 {
			t.Errorf("the executor was called %d times without a grant", slots)
		}
		if status := s.call("DELETE", "/api/v1/schedules/"+id, nil, nil); status >= 300 {
			t.Errorf("delete answered %d", status)
		}
		if status := s.call("GET", "/api/v1/schedules/"+id, nil, nil); status != http.StatusNotFound {
			t.Errorf("a deleted schedule is %d", status)
		}
	})
}
