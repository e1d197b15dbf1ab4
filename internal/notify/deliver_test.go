package notify

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// A process that dies after a webhook took a notice and before that is written
// leaves a notice that the next process delivers again, under the same id.
func TestCrashAfterDeliveryDeliversAgainUnderTheSameID(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		first := openDB(t, url)
		dead := make(chan struct{})
		hook := newReceiver(t, func(_ context.Context, nth int) int {
			if nth == 1 {
				_ = first.Close() // from here on the first process writes nothing
				close(dead)
			}
			return http.StatusOK
		})
		cfg := Config{Webhooks: []Webhook{{hook.URL, secret}}}
		r := newRig(t, first, cfg)
		r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
		before := hook.wait(t)
		<-dead
		go r.stop() // a dead process would not wait for its database either

		next := newRig(t, openDB(t, url), cfg)
		after := hook.wait(t)
		if after.ID != before.ID || after.Body != before.Body {
			t.Errorf("after the crash came %s %s, before it %s %s", after.ID, after.Body, before.ID, before.Body)
		}
		if err := verify(secret, after, time.Now()); err != nil {
			t.Error(err)
		}
		next.drained()
	})
}

// A process that dies before it delivers leaves everything to the next one.
func TestNoticeOutlivesTheProcessThatMadeIt(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		hook := newReceiver(t, alwaysOK)
		cfg := Config{Webhooks: []Webhook{{hook.URL, secret}}}
		first := openDB(t, url)
		n, err := New(Config{DB: first, Client: newClient(t), Webhooks: cfg.Webhooks})
		if err != nil {
			t.Fatal(err)
		}
		q, err := queue.New(queue.Config{DB: first, Node: store.Node{ID: "n"}})
		if err != nil {
			t.Fatal(err)
		}
		n.Attach(q)
		(&rig{t: t, db: first, n: n}).tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
		_ = first.Close()

		r := newRig(t, openDB(t, url), cfg)
		hook.wait(t)
		r.drained()
	})
}

// DESIGN 10: once per cause.
func TestSameCauseIsToldOnceWhileItWaits(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		hook := newReceiver(t, func(context.Context, int) int { return http.StatusBadGateway })
		r := newRig(t, openDB(t, url), Config{Webhooks: []Webhook{{hook.URL, secret}}},
			func(n *Notifier) { n.gaps = []time.Duration{time.Hour} })
		r.tell(sickLane(lane.NoticeAttention, "The first text."))
		eventually(t, "the failure is written", func() bool { return r.rows()[0].LastErr != "" })
		for range 3 {
			r.tell(sickLane(lane.NoticeAttention, "The newest text."))
		}
		other := sickLane(lane.NoticeAttention, "Another cause.")
		other.Issue = "permission"
		r.tell(other)
		var waiting []string
		for _, row := range r.rows() {
			var l letter
			if err := json.Unmarshal([]byte(row.Payload), &l); err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, l.Text)
		}
		slices.Sort(waiting)
		if got := strings.Join(waiting, " "); got != "Another cause. The newest text." {
			t.Errorf("what waits is: %s", got)
		}
	})
}

// The last notice that a person reads about a lane is how things are, however
// the attempts went: here a lane fails, recovers and fails again while its
// webhook is down.
func TestNoticesOfALaneArriveInTheirOrder(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		var up atomic.Bool
		hook := newReceiver(t, func(context.Context, int) int {
			if up.Load() {
				return http.StatusOK
			}
			return http.StatusBadGateway
		})
		r := newRig(t, openDB(t, url), Config{Webhooks: []Webhook{{hook.URL, secret}}},
			func(n *Notifier) { n.gaps = []time.Duration{500 * time.Millisecond} })
		r.tell(sickLane(lane.NoticeAttention, "It fails."))
		hook.wait(t)
		r.tell(sickLane(lane.NoticeRecovered, "It works again."))
		r.tell(sickLane(lane.NoticeAttention, "It fails again."))
		elsewhere := sickLane(lane.NoticeAttention, "Another lane.")
		elsewhere.Name = "stock"
		r.tell(elsewhere)
		for hook.wait(t).Event.Data.Lane != "stock" { // what waits holds up no other lane
		}
		up.Store(true)
		var texts []string
		for len(r.rows()) > 0 || len(hook.got) > 0 {
			if d := hook.wait(t); d.Event.Data.Lane == "prices" {
				texts = append(texts, d.Event.Data.Text)
			}
			eventually(t, "the next notice", func() bool { return len(hook.got) > 0 || len(r.rows()) == 0 })
		}
		if got := strings.Join(texts, " "); !strings.HasSuffix(got, "It works again. It fails again.") {
			t.Errorf("told in the order: %s", got)
		}
	})
}

// A pair that arises in one transaction keeps its order too.
func TestNoticesOfOneTransactionArriveInTheirOrder(t *testing.T) {
	hook := newReceiver(t, alwaysOK)
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{hook.URL, secret}}})
	for range 5 {
		r.tell(sickLane(lane.NoticeRecovered, "It works again."), sickLane(lane.NoticeReminder, "Or does it?"), sickLane(lane.NoticeAttention, "It does not."))
		for _, want := range []string{"lane.recovered", "lane.reminder", "lane.needs_attention"} {
			if d := hook.wait(t); d.Event.Type != want {
				t.Errorf("got %s, want %s", d.Event.Type, want)
			}
		}
		r.drained()
	}
}

func TestNoticeThatNobodyTakesIsLostAfterTheLastAttempt(t *testing.T) {
	hook := newReceiver(t, func(context.Context, int) int { return http.StatusInternalServerError })
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Webhooks: []Webhook{{hook.URL, secret}}},
		func(n *Notifier) { n.gaps = []time.Duration{time.Millisecond} })
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	eventually(t, "the job fails for good", func() bool { return r.rows()[0].State == 1 })
	if n := len(hook.got); n != maxAttempts {
		t.Errorf("%d attempts, want %d", n, maxAttempts)
	}
	if msg := r.rows()[0].LastErr; !strings.Contains(msg, `a notice is lost (needs_attention, workflow "prices", sign_in)`) {
		t.Errorf("the error does not say what is lost: %s", msg)
	}
}

// A target that is not set any more is not forgotten at once: another process
// may have it, or the operator puts it back.
func TestNoticeForAnUnknownTargetWaits(t *testing.T) {
	url := sqliteURL(t)
	hook := newReceiver(t, func(context.Context, int) int { return http.StatusInternalServerError })
	db := openDB(t, url)
	r := newRig(t, db, Config{Webhooks: []Webhook{{hook.URL, secret}}})
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	hook.wait(t)
	r.stop()
	_ = db.Close()
	next := newRig(t, openDB(t, url), Config{})
	eventually(t, "the job says why", func() bool { return strings.Contains(next.rows()[0].LastErr, "no target webhook-1") })
}

func TestNotifierWithoutTargetsTellsNobody(t *testing.T) {
	r := newRig(t, openDB(t, sqliteURL(t)), Config{})
	r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
	if rows := r.rows(); len(rows) != 0 {
		t.Errorf("jobs: %+v", rows)
	}
}

func TestNoticesThatSayNothingAreRefused(t *testing.T) {
	r := newRig(t, openDB(t, sqliteURL(t)), Config{})
	for _, bad := range []lane.Notice{
		{Ref: lane.Named(pawl.KindSource, "x")},
		{Ref: lane.Ref{Kind: pawl.KindSource}, What: lane.NoticeRecovered},
		{Ref: lane.Ref{Name: "x"}, What: lane.NoticeRecovered},
	} {
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return r.n.Notify(ctx, tx, bad) })
		if err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestAttemptsSpreadOverADay(t *testing.T) {
	n := &Notifier{gaps: gaps()}
	for id := range int64(50) {
		var total, last time.Duration
		for attempt := 1; attempt < maxAttempts; attempt++ {
			d := n.gap(id, attempt)
			if d < last*3/4 || d > longestGap {
				t.Errorf("job %d waits %v after attempt %d, %v before", id, d, attempt, last)
			}
			total, last = total+d, d
		}
		if total < 18*time.Hour || total > 25*time.Hour {
			t.Errorf("the attempts of job %d spread over %v", id, total)
		}
	}
}

func TestForeignTextFitsIntoOneLine(t *testing.T) {
	l := letterOf(lane.Notice{
		Ref: lane.Named(pawl.KindSource, "a\r\nBcc: x@example.com"), What: lane.NoticeRecovered, Text: "one\ntwo\x00 \xff" + strings.Repeat("é", 3000),
	}, time.Now(), "")
	if l.Lane != "a  Bcc: x@example.com" || !strings.HasPrefix(l.Text, "one two  \uFFFDé") || len([]rune(l.Text)) != longestText {
		t.Errorf("lane %q, text %q", l.Lane, l.Text)
	}
}
