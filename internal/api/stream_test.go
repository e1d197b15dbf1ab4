package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// event is one event as a client reads it.
type event struct{ id, kind, data string }

// listen opens the stream and gives its events until the test ends.
func (r *rig) listen(token, query string, headers ...string) <-chan event {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := http.DefaultClient.Do(r.request(token, "GET", "/api/v1/stream"+query, nil, headers...).WithContext(ctx)) //nolint:bodyclose // closed by the reader
	if err != nil {
		cancel()
		r.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		cancel()
		r.t.Fatalf("stream: %s %v", resp.Status, resp.Header)
	}
	out := make(chan event, 100)
	go func() {
		defer close(out)
		defer resp.Body.Close() //nolint:errcheck // nothing to lose
		var e event
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.data != "" {
					out <- e
				}
				e = event{}
			}
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		for range out { //nolint:revive // until the reader has ended
		}
	})
	return out
}

func (r *rig) next(events <-chan event) (e event, data client.JobEvent) {
	r.t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			r.t.Fatal("the stream ended")
		}
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			r.t.Fatalf("%q: %v", e.data, err)
		}
		return e, data
	case <-time.After(90 * time.Second):
		r.t.Fatal("no event")
		return e, data
	}
}

// The stream tells what happens to a job from beginning to end, and a client
// that comes back misses nothing.
func TestStreamTellsTheLifeOfAJob(t *testing.T) {
	both(t, func(r *rig) {
		events := r.listen(r.admin, "?kind=job,run")
		j := r.enqueue(map[string]any{"task": "echo", "payload": "secret", "delay": "1s"})
		var firstID string
		for i, what := range []string{"enqueued", "started", "succeeded"} {
			e, data := r.next(events)
			if e.kind != "job" || data.What != what || data.Job.ID != j.ID || data.At.IsZero() || (what == "succeeded") != (data.Job.Attempt == 1) || strings.Contains(e.data, "secret") {
				t.Errorf("event %+v, want %s", e, what)
			}
			if i == 0 {
				firstID = e.id
			}
		}
		again := r.listen(r.admin, "", "Last-Event-ID", firstID)
		if _, data := r.next(again); data.What != "started" {
			t.Errorf("resumed with %s", data.What)
		}
		scheduled := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		if _, data := r.next(events); data.What != "enqueued" || data.Job.State != string(store.JobScheduled) {
			t.Errorf("%+v", data)
		}
		r.do("DELETE", "/api/v1/jobs/"+scheduled.ID, nil).want(http.StatusNoContent)
		if _, data := r.next(events); data.What != "cancelled" || data.Job.State != string(store.JobCancelled) {
			t.Errorf("%+v", data)
		}
	})
}

func TestStreamRefusesWhatItCannotRead(t *testing.T) {
	both(t, func(r *rig) {
		p := r.do("GET", "/api/v1/stream", nil, "Last-Event-ID", "x").problem(422, "invalid")
		if p.Errors[0].Pointer != "/Last-Event-ID" {
			t.Errorf("%+v", p.Errors)
		}
		if p := r.do("HEAD", "/api/v1/stream", nil); p.status != http.StatusOK || len(p.body) != 0 {
			t.Errorf("HEAD: %d %q", p.status, p.body)
		}
		r.eventually("no stream is left over", func() bool {
			r.api.feed.mu.Lock()
			defer r.api.feed.mu.Unlock()
			return len(r.api.feed.followers) == 0
		})
	})
}

// A stream ends with its token, wherever that is revoked, and when it expires
// (P1 15).
func TestStreamEndsWithItsToken(t *testing.T) {
	both(t, func(r *rig) {
		r.serve(500 * time.Millisecond) // a stream outlives what a request may take
		here, elsewhere := r.token("ada", userstore.RoleViewer, "read"), r.token("bob", userstore.RoleViewer, "read")
		brief := r.tokenUntil("cleo", userstore.RoleViewer, time.Now().Add(1500*time.Millisecond), "read")
		streams := map[string]<-chan event{}
		for _, token := range []string{here, elsewhere, brief, r.admin} {
			streams[token] = r.listen(token, "")
		}
		r.do("DELETE", "/api/v1/tokens/"+r.find(here).ID, nil).want(http.StatusNoContent)
		r.exec(`update tokens set revoked_at = $1 where id = $2`, time.Now().UnixMilli(), r.find(elsewhere).ID) // as another process does
		for _, token := range []string{here, elsewhere, brief} {
			select {
			case _, open := <-streams[token]:
				if open {
					t.Error("told something")
				}
			case <-time.After(30 * time.Second):
				t.Error("goes on")
			}
		}
		j := r.enqueue(map[string]any{"task": "echo"})
		if _, data := r.next(streams[r.admin]); data.Job.ID != j.ID {
			t.Errorf("a good token is told %+v", data)
		}
	})
}

// One user cannot hold all streams: there is a limit, and it is told with when
// to try again (P1 15).
func TestStreamsOfAUserAreBounded(t *testing.T) {
	both(t, func(r *rig) {
		token := r.find(r.token("mallory", userstore.RoleViewer, "read"))
		var open []*access.Stream
		for range access.MostStreamsOfUser {
			s, err := r.api.keeper.Open(&token)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, s)
		}
		again := r.token("mallory", userstore.RoleViewer, "read") // another token of the same user
		p := r.as(again, "GET", "/api/v1/stream", nil)
		if p.problem(http.StatusTooManyRequests, "too_many_streams"); p.header.Get("Retry-After") == "" {
			t.Error("does not say when to try again")
		}
		r.listen(r.admin, "")
		open[0].Close()
		r.listen(again, "")
		for _, s := range open {
			s.Close()
		}
	})
}
