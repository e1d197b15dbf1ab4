package hook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// asks is a hook that has its ids and its conditions in headers of its own, and makes
// deliveries jobs.
const asks = `
kind: hook
name: github
verify: {scheme: hmac, secret: "${GITHUB_SECRET}", header: X-Hub-Signature-256, prefix: "sha256="}
deliveryId: header:X-Call
when: {header:X-Topic: [news, olds]}
job: {task: mail}
`

func call(headers map[string]string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hooks/github", strings.NewReader(opened))
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return signed(r, secret, opened)
}

// Of the headers those are kept that the hook asks about, whatever they are called, and
// no signature; and a delivery says which job it became.
func TestHeadersThatAHookAsksAboutAreKept(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(asks)
		w := k.expect("a delivery", http.StatusAccepted, call(map[string]string{"X-Call": "c1", "X-Topic": "news", "X-Other": "o"}))
		if kind := w.Header().Get("Content-Type"); kind != "application/json" {
			t.Errorf("the answer is of the type %q", kind)
		}
		d := k.one(hookstore.Delivered)
		if d.DeliveryID != "c1" || d.Headers["X-Call"] != "c1" || d.Headers["X-Topic"] != "news" || d.Headers["X-Other"] != "" || d.Headers["X-Hub-Signature-256"] != "" {
			t.Errorf("kept: %v", d.Headers)
		}
		jobs := k.effects()
		if len(jobs) != 1 || !strings.HasPrefix(d.Effect, "enqueued the job ") || strings.HasSuffix(d.Effect, " ") {
			t.Errorf("it %s: %v", d.Effect, jobs)
		}
	})
}

// A delivery without its id is told where it should have been.
func TestADeliveryIsToldWhereItsIDIsMissing(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for id, want := range map[string]string{"header:X-Call": "no id in the header X-Call", "body:issue.call": "no id in the body at issue.call"} {
			k.apply(strings.Replace(asks, "header:X-Call", id, 1))
			w := k.expect(id, http.StatusUnprocessableEntity, call(map[string]string{"X-Topic": "news"}))
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: it is told %s", id, w.Body)
			}
		}
	})
}

// A job that is refused leaves the delivery pending and nothing else; what is told of it
// is why it was refused the last time.
func TestADeliveryWhoseJobIsRefusedIsPending(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(asks)
		k.refusal.Store(&pawl.Error{Code: pawl.CodeInvalid, Msg: "the first reason"})
		k.expect("a delivery", http.StatusAccepted, call(map[string]string{"X-Call": "c1", "X-Topic": "news"}))
		d := k.one(hookstore.Pending)
		if d.Effect != "" || d.Effects != 0 || d.Attempts != 1 || d.Reason != "the first reason" || len(k.effects()) != 0 {
			t.Errorf("%+v", d)
		}
		k.refusal.Store(&pawl.Error{Code: pawl.CodeInvalid, Msg: "another reason"})
		k.due()
		if d = k.run(d.ID); d.Outcome != hookstore.Failed || d.Reason != "another reason" || len(k.effects()) != 0 {
			t.Errorf("in the end %+v", d)
		}
	})
}

// A delivery that is tried again during a halt spends no attempt on it: nothing was wrong
// with it.
func TestAHaltSpendsNoAttemptOfADelivery(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(asks)
		k.refusal.Store(&pawl.Error{Code: pawl.CodeInvalid, Msg: "not now"})
		k.expect("a delivery", http.StatusAccepted, call(map[string]string{"X-Call": "c1", "X-Topic": "news"}))
		d := k.one(hookstore.Pending)
		k.refusal.Store(nil)
		asked := 0
		k.s.cfg.Enqueue = func(ctx context.Context, tx *store.Tx, job store.JobSpec) (string, error) {
			if asked++; asked < 5 {
				return "", &pawl.Error{Code: pawl.CodeConflict, Reason: lane.ReasonHalted, Msg: "everything is halted"}
			}
			return k.effect(ctx, tx, job)
		}
		k.due()
		if d = k.run(d.ID); d.Outcome != hookstore.Delivered || d.Attempts != 2 || d.Effects != 1 || len(k.effects()) != 1 {
			t.Errorf("after %d times: %+v", asked, d)
		}
	})
}

// What became of deliveries is counted, each once: those that are delivered, that are
// refused, and that found no room.
func TestDeliveriesAreCounted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(asks)
		good := map[string]string{"X-Call": "c1", "X-Topic": "news"}
		k.expect("a delivery", http.StatusAccepted, call(good))
		k.expect("one without an id", http.StatusUnprocessableEntity, call(nil))
		for range cap(k.s.flights) {
			k.s.flights <- struct{}{}
		}
		k.expect("one too many", http.StatusServiceUnavailable, call(good))
		for _, outcome := range []string{hookstore.Delivered, hookstore.Refused, "unavailable"} {
			if n := testutil.ToFloat64(k.s.counted.WithLabelValues("github", outcome)); n != 1 {
				t.Errorf("%v are %s", n, outcome)
			}
		}
		if n := testutil.CollectAndCount(k.s.counted); n != 3 {
			t.Errorf("%d things are counted", n)
		}
	})
}
