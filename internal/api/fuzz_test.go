package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/store"
)

// FuzzCursor: a cursor is one that this kind of list gave out, or refused.
func FuzzCursor(f *testing.F) {
	code := base64.RawURLEncoding.EncodeToString
	for _, text := range []string{"", code([]byte("k:5:a")), code([]byte("k:-1")), code([]byte("k:")), code([]byte("other:5:a")), code([]byte("k:99999999999999999999:a")), code([]byte("k:5:\x00")), "!!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		in := PageInput{Cursor: cursor}
		if at, id, err := in.placeInTime("k"); err == nil && id != "" {
			if again, same, err := (PageInput{Cursor: code([]byte("k:" + timeCursor(at, id)))}).placeInTime("k"); err != nil || same != id || !again.Equal(at) {
				t.Fatalf("%q leads to %v %q, and then to %v %q, %v", cursor, at, id, again, same, err)
			}
		}
		if n, err := in.placeInOrder("k"); err == nil && n < 0 {
			t.Fatalf("%q leads to %d", cursor, n)
		}
	})
}

// fuzzedRoutes are those of the document but for what streams, and what reaches out to
// the addresses that it is given.
func (r *rig) fuzzedRoutes() (out []string) {
	for _, op := range r.operations() {
		if op.path != "/api/v1/stream" && op.path != "/api/v1/backup" && !strings.HasPrefix(op.path, "/api/v1/sources") && !strings.HasPrefix(op.path, "/api/v1/connections") {
			out = append(out, op.method+" "+strings.NewReplacer("{id}", "1", "{name}", "t", "{kind}", "workflow", "{instant}", "2030-01-01T00:00:00Z").Replace(op.path))
		}
	}
	slices.Sort(out)
	return out
}

// FuzzRoutes: whatever is sent, the server answers with a whole problem or with what
// was asked for. What it does not foresee would be a 500.
func FuzzRoutes(f *testing.F) {
	r := newRig(f, "sqlite:"+filepath.Join(f.TempDir(), "pawl.db"))
	routes := r.fuzzedRoutes()
	for i := range routes {
		f.Add(i, "", `{"task":"echo","payload":{"a":1},"lane":"l","key":"k","priority":1}`)
		f.Add(i, "limit=1&cursor=a&state=failed&label=a%3Db", `{"jobs":[{"id":"1","token":"t","result":{}}],"worker":"w","limit":3,"wait":"0s"}`)
		f.Add(i, "%", `{"name":"a","kind":"source","url":"http://x/","lease":"5s","scopes":["*"]}`)
		f.Add(i, "x=\xff", "[")
		f.Add(i, "", `{"name":"s","graphId":"x:y","cron":"* * * * *","days":["2026-01-01"],"delay":"99999999h"}`)
	}
	ended := make(chan struct{})
	defer close(ended)
	go r.drain(ended)
	f.Fuzz(func(t *testing.T, route int, query, body string) {
		method, path, _ := strings.Cut(routes[uint(route)%uint(len(routes))], " ")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		req.URL.RawQuery = query
		req.Header.Set("Authorization", "Bearer "+r.admin)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		r.api.ServeHTTP(w, req)
		if w.Code >= 500 && ctx.Err() == nil {
			t.Fatalf("%s %s?%s %q: %d %s", method, path, query, body, w.Code, w.Body)
		}
		if w.Code >= 400 && !json.Valid(w.Body.Bytes()) && ctx.Err() == nil {
			t.Fatalf("%s %s: %d with %q", method, path, w.Code, w.Body)
		}
	})
}

// drain takes what ran, so that nobody waits.
func (r *rig) drain(ended <-chan struct{}) {
	for {
		select {
		case <-r.ran:
		case <-ended:
			return
		}
	}
}

// FuzzDoor: the door in SQL takes what the API takes, and refuses what it refuses, on a
// real PostgreSQL.
func FuzzDoor(f *testing.F) {
	f.Add(0, "lane", "key", 1, 0, 10, int64(3600), "text")
	f.Add(1, " a", "", 0, 2, 0, int64(-1), "")
	f.Add(2, "", "a\tb", 3, -2, 1001, int64(400_000_000), "x")
	f.Add(3, "\u202e", "\u00a0", 2, 1, 1000, int64(-900_000_000), "\u0000")
	f.Add(0, strings.Repeat("ä", 257), "k", 4, 0, 1, int64(0), "")
	f.Add(0, "a\u2028", "\U0001f600", 1, -1, 5, int64(86400), "\"")
	r := newDoorRig(f)
	ended := make(chan struct{})
	defer close(ended)
	go r.drain(ended)
	f.Fuzz(func(t *testing.T, task int, lane, key string, mode, priority, attempts int, later int64, payload string) {
		for _, text := range []string{lane, key, payload} {
			if !utf8.ValidString(text) || len(text) > 3000 {
				return // JSON has other texts only
			}
		}
		if strings.ContainsRune(payload, 0) {
			return // jsonb cannot hold it: PostgreSQL refuses the cast before the function is called
		}
		at := time.Now().Add(time.Duration(min(max(later, -1<<31), 1<<31)) * time.Second).UTC()
		near := func(edge time.Time) bool { return at.Sub(edge).Abs() < time.Minute }
		if near(earliestRunAt()) || near(time.Now().Add(store.MaxAhead)) {
			return // one door may ask a moment later than the other
		}
		job := map[string]any{
			"task": []string{"echo", "fail", "nobody", "pawl.prune"}[uint(task)%4], "priority": priority, "maxAttempts": attempts, "payload": map[string]string{"a": payload}, "runAt": at.Format(time.RFC3339),
		}
		for name, text := range map[string]string{"lane": lane, "key": key, "keyMode": []string{"", "replace", "keep", "preserve_run_at", "earliest"}[uint(mode)%5]} {
			if text != "" {
				job[name] = text
			}
		}
		if attempts == 0 || key == "" && job["keyMode"] == "replace" {
			return // zero is nothing to the API, and so is the usual mode without a key to the database
		}
		raw, err := json.Marshal([]any{job})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/jobs", bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+r.admin)
		req.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		r.api.ServeHTTP(answer, req)
		err = r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `select pawl.add_jobs($1::text::jsonb)`, string(raw))
			return err
		})
		if taken := answer.Code == http.StatusCreated; taken != (err == nil) {
			t.Fatalf("%s: the API says %d %s, and the database %v", raw, answer.Code, answer.Body, err)
		} else if !taken && !slices.Contains([]int{400, 413, 422}, answer.Code) {
			t.Fatalf("%s: the API says %d %s", raw, answer.Code, answer.Body)
		}
	})
}
