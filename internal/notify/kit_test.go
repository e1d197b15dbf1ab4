package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// patience bounds every wait of a test.
const patience = 20 * time.Second

// secret is what webhooks of the tests sign with: the 18 bytes "eighteen bytes ok!".
const secret = "whsec_ZWlnaHRlZW4gYnl0ZXMgb2sh"

func sqliteURL(t *testing.T) string { return "sqlite:" + t.TempDir() + "/pawl.db" }

func openDB(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func newClient(t *testing.T, allow ...string) *outbound.Client {
	t.Helper()
	prefixes, err := outbound.ParsePrefixes(allow)
	if err != nil {
		t.Fatal(err)
	}
	c, err := outbound.New(outbound.Config{AllowPrivate: prefixes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// rig is a notifier with a real queue on a real database.
type rig struct {
	t    *testing.T
	db   *store.DB
	n    *Notifier
	q    *queue.Queue
	stop func()
}

// newRig starts a notifier that waits 100 ms between attempts.
func newRig(t *testing.T, db *store.DB, cfg Config, change ...func(*Notifier)) *rig {
	t.Helper()
	cfg.DB, cfg.Log = db, testLog(t)
	if cfg.Client == nil {
		cfg.Client = newClient(t, "127.0.0.1")
	}
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.gaps = []time.Duration{100 * time.Millisecond}
	for _, c := range change {
		c(n)
	}
	r := &rig{t: t, db: db, n: n}
	r.q, r.stop = startQueue(t, db, map[string]queue.Task{Name: n.Task()})
	n.Attach(r.q)
	return r
}

// startQueue runs a queue until the test ends. A queue that is started anew on
// the same database is the successor of a dead one.
func startQueue(t *testing.T, db *store.DB, tasks map[string]queue.Task) (q *queue.Queue, stop func()) {
	t.Helper()
	q, err := queue.New(queue.Config{DB: db, Node: store.Node{ID: "n", Share: true}, Workers: 4, Drain: time.Millisecond, Tasks: tasks, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = q.Run(ctx)
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	t.Cleanup(stop)
	return q, stop
}

// sickLane is a notice like any other.
func sickLane(what, text string) lane.Notice {
	return lane.Notice{Ref: lane.Named(pawl.KindWorkflow, "prices"), What: what, Issue: "sign_in", Text: text, RunID: "run-7", URL: "/workflows/prices"}
}

// tell commits notices in one transaction.
func (r *rig) tell(notices ...lane.Notice) {
	r.t.Helper()
	err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, notice := range notices {
			if err := r.n.Notify(ctx, tx, notice); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// row is a job of the task pawl.notify as the table has it.
type row struct {
	State            int
	Payload, LastErr string
	Wait             time.Duration // from its creation
}

func (r *rig) rows() (rows []row) {
	r.t.Helper()
	err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		found, err := tx.Query(ctx, `select state, payload, coalesce(last_error, ''), run_at - created_at from jobs where task = $1`, Name)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			var one row
			var ms int64
			if err := found.Scan(&one.State, &one.Payload, &one.LastErr, &ms); err != nil {
				return err
			}
			one.Wait = time.Duration(ms) * time.Millisecond
			rows = append(rows, one)
		}
		return found.Err()
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

func (r *rig) drained() {
	r.t.Helper()
	eventually(r.t, "no notice waits any more", func() bool { return len(r.rows()) == 0 })
}

// delivery is a request that a receiver got.
type delivery struct {
	ID, Timestamp, Signature, Body string
	Event                          struct {
		Type, Timestamp string
		Data            struct{ Kind, Lane, Issue, Text, RunID, URL string }
	}
}

// receiver is a webhook with faults on demand.
type receiver struct {
	*httptest.Server
	got chan delivery
}

// newReceiver answers the nth request (1, 2, ...) with the status that answer
// gives; answer may block for as long as the context of the request lasts.
func newReceiver(t *testing.T, answer func(ctx context.Context, nth int) int) *receiver {
	t.Helper()
	r := &receiver{got: make(chan delivery, 100)}
	var mu sync.Mutex
	count := 0
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		d := delivery{ID: req.Header.Get("webhook-id"), Timestamp: req.Header.Get("webhook-timestamp"), Signature: req.Header.Get("webhook-signature"), Body: string(body)}
		if err := json.Unmarshal(body, &d.Event); err != nil {
			t.Errorf("the body is no JSON: %v", err)
		}
		mu.Lock()
		count++
		nth := count
		mu.Unlock()
		r.got <- d
		w.WriteHeader(answer(req.Context(), nth))
	}))
	t.Cleanup(r.Close)
	return r
}

func alwaysOK(context.Context, int) int { return http.StatusOK }

func (r *receiver) wait(t *testing.T) delivery {
	t.Helper()
	select {
	case d := <-r.got:
		return d
	case <-time.After(patience):
		t.Fatal("no notice came")
		return delivery{}
	}
}

// verify checks a delivery as the scheme asks of a receiver, in code that has
// nothing of the sender's.
func verify(secret string, d delivery, now time.Time) error {
	var sent int64
	if _, err := fmt.Sscan(d.Timestamp, &sent); err != nil {
		return errors.New("no timestamp")
	}
	if age := now.Sub(time.Unix(sent, 0)); age > 5*time.Minute || age < -5*time.Minute {
		return errors.New("too old or too new")
	}
	key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	if err != nil {
		return err
	}
	h := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(h, "%s.%d.%s", d.ID, sent, d.Body)
	for one := range strings.SplitSeq(d.Signature, " ") {
		version, encoded, _ := strings.Cut(one, ",")
		if sum, err := base64.StdEncoding.DecodeString(encoded); version == "v1" && err == nil && hmac.Equal(sum, h.Sum(nil)) {
			return nil
		}
	}
	return errors.New("no signature matches")
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}
