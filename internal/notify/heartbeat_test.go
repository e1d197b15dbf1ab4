package notify

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// watcher counts beats and answers them with a status.
func watcher(t *testing.T, status int) (url string, beats chan string) {
	t.Helper()
	beats = make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		beats <- r.Method + " " + r.URL.Path
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/s3cret", beats
}

// startHeartbeat runs a heartbeat in a queue of its own.
func startHeartbeat(t *testing.T, db *store.DB, cfg HeartbeatConfig) *queue.Queue {
	t.Helper()
	cfg.Client, cfg.Every = newClient(t, "127.0.0.1"), time.Second
	h, err := NewHeartbeat(cfg)
	if err != nil {
		t.Fatal(err)
	}
	q, _ := startQueue(t, db, map[string]queue.Task{HeartbeatName: h.Task()})
	if _, err := q.Enqueue(t.Context(), h.Jobs()...); err != nil {
		t.Fatal(err)
	}
	return q
}

func beat(t *testing.T, beats chan string) {
	t.Helper()
	select {
	case got := <-beats:
		if got != "GET /s3cret" {
			t.Errorf("a beat is %s", got)
		}
	case <-time.After(patience):
		t.Fatal("no beat came")
	}
}

// DESIGN 10: an outbound heartbeat makes silence an alarm.
func TestHeartGoesOnBeating(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		address, beats := watcher(t, http.StatusOK)
		startHeartbeat(t, openDB(t, url), HeartbeatConfig{URL: address, Health: func() error { return nil }})
		for range 3 {
			beat(t, beats)
		}
	})
}

// A beat that is not taken is not tried again and stops nothing. The log says
// it once.
func TestFailedBeatIsFollowedByTheNextOne(t *testing.T) {
	address, beats := watcher(t, http.StatusInternalServerError)
	var log lockedBuffer
	db := openDB(t, sqliteURL(t))
	startHeartbeat(t, db, HeartbeatConfig{
		URL: address, Health: func() error { return nil }, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for range 3 {
		beat(t, beats)
	}
	if job := heartbeatJobs(t, db); len(job) != 1 || job[0].Attempt != 0 {
		t.Errorf("a beat that failed counts as an attempt: %+v", job)
	}
	if said := log.String(); strings.Count(said, "the heartbeat is silent") != 1 || strings.Contains(said, "s3cret") {
		t.Errorf("the log says %s", said)
	}
}

func TestHeartIsSilentWhileTheQueueIsSick(t *testing.T) {
	address, beats := watcher(t, http.StatusOK)
	var well atomic.Bool
	asked := make(chan struct{}, 100)
	startHeartbeat(t, openDB(t, sqliteURL(t)), HeartbeatConfig{URL: address, Health: func() error {
		defer func() { asked <- struct{}{} }()
		if well.Load() {
			return nil
		}
		return errors.New("the disk is full")
	}})
	for range 2 {
		<-asked
	}
	if len(beats) > 0 {
		t.Error("a sick queue beats")
	}
	well.Store(true)
	beat(t, beats)
}

// Without a URL nothing is enqueued, and what an earlier process left ends.
func TestHeartWithoutURLComesToRest(t *testing.T) {
	db := openDB(t, sqliteURL(t))
	h, err := NewHeartbeat(HeartbeatConfig{})
	if err != nil || len(h.Jobs()) != 0 {
		t.Fatalf("%v, %d jobs", err, len(h.Jobs()))
	}
	q, _ := startQueue(t, db, map[string]queue.Task{HeartbeatName: h.Task()})
	if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: HeartbeatName, Key: HeartbeatName}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job ends", func() bool { return len(heartbeatJobs(t, db)) == 0 })
}

func heartbeatJobs(t *testing.T, db *store.DB) []store.JobRecord {
	t.Helper()
	jobs, _, err := db.ListJobs(t.Context(), store.JobFilter{Task: HeartbeatName}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func TestBeatsKeepTheirRhythm(t *testing.T) {
	due := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ late, want time.Duration }{
		{0, time.Minute},
		{2 * time.Second, time.Minute},
		{59 * time.Second, time.Minute},
		{time.Minute, 2 * time.Minute},
		{time.Hour, time.Hour + time.Minute},
	} {
		if got := nextBeat(due, due.Add(c.late), time.Minute); !got.Equal(due.Add(c.want)) {
			t.Errorf("%v late: the next beat is %v after the due one, want %v", c.late, got.Sub(due), c.want)
		}
	}
}

func TestBadHeartbeatIsRefused(t *testing.T) {
	client, well := newClient(t), func() error { return nil }
	for name, cfg := range map[string]HeartbeatConfig{
		"no scheme": {URL: "s3cret.example.com", Client: client, Health: well},
		"too fast":  {URL: "https://example.com/s3cret", Every: time.Millisecond, Client: client, Health: well},
		"no client": {URL: "https://example.com/s3cret", Health: well},
	} {
		if _, err := NewHeartbeat(cfg); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// lockedBuffer is a log that two goroutines may use.
type lockedBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}
