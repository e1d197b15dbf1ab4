package hook

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
)

// atOnce sends deliveries d0, d1 and so on that all wait while the first is being kept,
// and returns their answers.
func (k *kit) atOnce(n int) map[string]int {
	k.t.Helper()
	var first, told sync.Mutex
	hold, fault := true, k.fault
	k.fault = func(key string) error {
		first.Lock()
		for until := time.Now().Add(10 * time.Second); hold && len(k.s.flights) < n && time.Now().Before(until); {
			runtime.Gosched()
		}
		hold = false
		first.Unlock()
		if fault != nil {
			return fault(key)
		}
		return nil
	}
	defer func() { k.fault = fault }()
	codes := map[string]int{}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			id := fmt.Sprint("d", i)
			code := k.send(request(id, opened)).Code
			told.Lock()
			defer told.Unlock()
			codes[id] = code
		})
	}
	wg.Wait()
	return codes
}

// each is the same answer to all of so many deliveries.
func each(n, code int) map[string]int {
	out := map[string]int{}
	for i := range n {
		out[fmt.Sprint("d", i)] = code
	}
	return out
}

// events are the effects of deliveries, by their message ids.
func (k *kit) events() map[string]int {
	out := map[string]int{}
	for _, j := range k.effects() {
		out[j.Key]++
	}
	return out
}

// Deliveries that become events of one topic and come at once are one transaction: each
// has its own row, its own effect and its own answer.
func TestDeliveriesAtOnceAreOneTransaction(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		const n = 40
		if codes := k.atOnce(n); !maps.Equal(codes, each(n, http.StatusAccepted)) {
			t.Errorf("the answers are %v", codes)
		}
		if events := k.events(); len(events) != n || len(k.effects()) != n || len(k.deliveries("github", "delivered")) != n {
			t.Errorf("they became %v", events)
		}
		if codes := k.atOnce(n); !maps.Equal(codes, each(n, http.StatusOK)) || len(k.effects()) != n {
			t.Errorf("again, the answers are %v", codes)
		}
		if k.db.Shared() {
			var transactions int
			k.read(&transactions, `select count(distinct xmin::text) from hook_deliveries`)
			if transactions > n/2 {
				t.Errorf("they are %d transactions", transactions)
			}
		}
	})
}

// One of many that cannot be kept is told so and leaves nothing; the others are kept. A
// payload that is not there is known before.
func TestOneOfManyDeliveriesIsNotKept(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		const n = 20
		k.fault = func(key string) error {
			if key == "hook/github/d7" {
				return errKilled
			}
			return nil
		}
		want := each(n, http.StatusAccepted)
		want["d7"] = http.StatusServiceUnavailable
		if codes := k.atOnce(n); !maps.Equal(codes, want) {
			t.Errorf("the answers are %v", codes)
		}
		if events := k.events(); len(events) != n-1 || events["hook/github/d7"] != 0 || len(k.deliveries("github", "")) != n-1 {
			t.Errorf("they became %v", events)
		}
		k.fault = nil
		k.start()
		k.expect("sent again", http.StatusAccepted, request("d7", opened))
		k.expect("and again", http.StatusOK, request("d7", opened))
		if events := k.events(); len(events) != n {
			t.Errorf("they became %v", events)
		}
	})
}

// Deliveries of which nobody knows whether they were kept, because the answer to their
// commit was lost, are not called kept. Sent again they are known, and none has a second
// effect.
func TestDeliveriesWithoutAnAnswerToTheirCommit(t *testing.T) {
	p := proxy.New(t, postgres(t))
	k := newKit(t, p.URL())
	k.apply(github)
	const n = 20
	p.LoseAnswers("COMMIT", -1)
	if codes := k.atOnce(n); !maps.Equal(codes, each(n, http.StatusServiceUnavailable)) {
		t.Errorf("the answers are %v", codes)
	}
	p.KeepAnswers()
	kept := k.events()
	if len(kept) == 0 {
		t.Error("nothing was committed")
	}
	for id, code := range k.atOnce(n) {
		want := http.StatusAccepted
		if kept["hook/github/"+id] > 0 {
			want = http.StatusOK
		}
		if code != want {
			t.Errorf("%s again: %d, want %d", id, code, want)
		}
	}
	if events := k.events(); !maps.Equal(events, k.once(n)) {
		t.Errorf("they became %v", events)
	}
}

// once is one event for each of so many deliveries.
func (k *kit) once(n int) map[string]int {
	out := map[string]int{}
	for i := range n {
		out[fmt.Sprint("hook/github/d", i)] = 1
	}
	return out
}

// A delivery whose payload is not in its body waits for nobody and spoils nobody's
// transaction: it is pending, by itself.
func TestADeliveryWithoutItsPayloadIsPending(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github[:len(github)-2] + `, payload: "body:issue.title"}` + "\n")
		tried := false
		k.fault = func(string) error { tried = true; return nil }
		k.expect("without", http.StatusAccepted, request("d1", opened))
		if d := k.one("pending"); d.Attempts != 1 || d.Reason != "the body has nothing at body:issue.title" || tried {
			t.Errorf("it is %+v", d)
		}
	})
}

// read reads one value.
func (k *kit) read(into any, sql string) {
	k.t.Helper()
	if err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.QueryRow(ctx, sql).Scan(into) }); err != nil {
		k.t.Fatal(err)
	}
}
