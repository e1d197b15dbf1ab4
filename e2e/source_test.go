package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// market is an API of many small pages, which tells how far it was read.
type market struct {
	*httptest.Server
	rows, size int
	mu         sync.Mutex
	pages      int
	slow       time.Duration
}

func newMarket(t *testing.T, rows, size int, slow time.Duration) *market {
	m := &market{rows: rows, size: size, slow: slow}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("after"))
		m.mu.Lock()
		m.pages++
		m.mu.Unlock()
		select {
		case <-time.After(m.slow):
		case <-r.Context().Done():
			return
		}
		to := min(from+m.size, m.rows)
		body := map[string]any{}
		var list []any
		for i := from; i < to; i++ {
			list = append(list, map[string]any{"id": i, "price": float64(i) / 4, "at": "2026-01-02T03:04:05Z"})
		}
		body["items"] = list
		if to < m.rows {
			body["next"] = strconv.Itoa(to)
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *market) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pages
}

func (m *market) definition() map[string]any {
	return map[string]any{
		"name": "prices", "url": m.URL + "/prices", "table": "prices", "schedule": "daily",
		"response": map[string]any{"dataPath": "items", "fields": []any{
			map[string]any{"source": "id", "target": "id", "type": "integer"},
			map[string]any{"source": "price", "target": "price", "type": "number"},
			map[string]any{"source": "at", "target": "at", "type": "timestamp"},
		}},
		"write":            map[string]any{"mode": "upsert", "key": []string{"id"}},
		"cursorPagination": map[string]any{"cursorParam": "after", "nextCursorPath": "next"},
	}
}

// rowsOf reads every row of a source through the API.
func (s *server) rowsOf(name string) map[int]float64 {
	s.t.Helper()
	rows := map[int]float64{}
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				ID    int     `json:"id"`
				Price float64 `json:"price"`
			} `json:"items"`
			NextCursor *string `json:"nextCursor"`
		}
		if status := s.call("GET", "/api/v1/sources/"+name+"/rows?limit=100&cursor="+cursor, nil, &page); status != http.StatusOK {
			s.t.Fatalf("rows: %d", status)
		}
		for _, r := range page.Items {
			if _, twice := rows[r.ID]; twice {
				s.t.Errorf("row %d is there twice", r.ID)
			}
			rows[r.ID] = r.Price
		}
		if page.NextCursor == nil {
			return rows
		}
		cursor = *page.NextCursor
	}
}

// B-10, B-37, B-46, X-34: a server that is killed again and again in the middle
// of a fetch completes the table without duplicates, and does not fetch again
// what it had.
func TestAKilledFetchIsCompleted(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		m := newMarket(t, 400, 20, 30*time.Millisecond)
		s := serve(t, database)
		if status := s.call("PUT", "/api/v1/sources/prices", m.definition(), nil); status != http.StatusCreated {
			t.Fatalf("apply answered %d", status)
		}
		for _, pages := range []int{4, 11} {
			s.eventually(fmt.Sprintf("%d pages were asked for", pages), func() bool { return m.asked() >= pages })
			s.kill()
			s.start()
		}
		var source struct {
			Status    string `json:"status"`
			Freshness struct {
				LastSuccessAt *time.Time `json:"lastSuccessAt"`
			} `json:"freshness"`
		}
		s.eventually("the fetch is complete", func() bool {
			return s.call("GET", "/api/v1/sources/prices", nil, &source) == http.StatusOK && source.Freshness.LastSuccessAt != nil
		})
		rows := s.rowsOf("prices")
		for i := range 400 {
			if rows[i] != float64(i)/4 {
				t.Fatalf("row %d is %v", i, rows[i])
			}
		}
		if len(rows) != 400 {
			t.Errorf("there are %d rows, want 400", len(rows))
		}
		if n := m.asked(); n > 20+2*4 {
			t.Errorf("%d pages were asked for; a fetch that was cut off goes on where it was", n)
		}
	})
}

// Bad definitions and refused actions say what is wrong and change nothing.
func TestBadSourcesAreRefused(t *testing.T) {
	s := serve(t, "sqlite:.pawl/pawl.db")
	bad := map[string]any{"name": "evil", "url": "http://127.0.0.1:1/", "table": "runs", "response": map[string]any{"fields": []any{map[string]any{"source": "a", "target": "a; drop table runs", "type": "text"}}}}
	var problem struct {
		Code   string `json:"code"`
		Errors []struct {
			Pointer string `json:"pointer"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if status := s.call("PUT", "/api/v1/sources/evil", bad, &problem); status != http.StatusUnprocessableEntity || len(problem.Errors) != 2 {
		t.Errorf("it was answered %d, %+v", status, problem)
	}
	if status := s.call("GET", "/api/v1/sources/evil", nil, nil); status != http.StatusNotFound {
		t.Errorf("a refused source is there: %d", status)
	}
	if status := s.call("POST", "/api/v1/sources/nobody/run", nil, &problem); status != http.StatusNotFound {
		t.Errorf("running nobody answered %d", status)
	}
}
