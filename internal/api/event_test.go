package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// a messageId that is known makes a duplicate. It changes the payload
// while the event is pending, and nothing later.
func TestPublishTwiceIsADuplicate(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", orders)
		r.do("POST", "/api/v1/workflows/orders/pause", nil).want(200)
		publish := func(payload, want int) (e client.PublishedEvent) {
			r.do("POST", "/api/v1/workflows/orders/events", map[string]any{"topic": "order", "messageId": "m", "payload": payload}).want(want).into(&e)
			return e
		}
		e := publish(1, 201)
		if e.Duplicate || e.Changed || e.Topic != "order" || e.MessageID != "m" || string(e.Payload) != "1" || e.Status != "pending" || e.CausedBy == nil || e.CreatedBy != "admin" || e.ReservedBy != "" || e.CreatedAt.IsZero() {
			t.Errorf("%+v", e)
		}
		if e = publish(1, 200); !e.Duplicate || e.Changed || string(e.Payload) != "1" {
			t.Errorf("the same: %+v", e)
		}
		if e = publish(2, 200); !e.Duplicate || !e.Changed || string(e.Payload) != "2" || e.Status != "pending" {
			t.Errorf("changed: %+v", e)
		}
		r.do("POST", "/api/v1/workflows/orders/resume", nil).want(200)
		r.eventually("the event is consumed", func() bool {
			list := pages[client.Event](r, "/api/v1/workflows/orders/events?topic=order")
			return len(list) == 1 && list[0].Status == "consumed" && list[0].ReservedBy != ""
		})
		if e = publish(3, 200); !e.Duplicate || e.Changed || string(e.Payload) != "2" || e.Status != "consumed" {
			t.Errorf("too late: %+v", e)
		}
	})
}

func TestPublishOnceByKey(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", orders)
		body := map[string]any{"topic": "order", "messageId": "m", "payload": 1}
		first := r.do("POST", "/api/v1/workflows/orders/events", body, "Idempotency-Key", "k").want(201)
		again := r.do("POST", "/api/v1/workflows/orders/events", body, "Idempotency-Key", "k").want(201)
		if string(first.body) != string(again.body) || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s\n%s", first.body, again.body)
		}
		body["payload"] = 2
		r.do("POST", "/api/v1/workflows/orders/events", body, "Idempotency-Key", "k").problem(422, "idempotency_mismatch")
	})
}

// Many who publish at once, each of them twice by one key, publish each event once.
func TestPublishAtOnce(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", orders)
		r.do("POST", "/api/v1/workflows/orders/pause", nil).want(200)
		var wg sync.WaitGroup
		var repeated atomic.Int64
		for i := range 40 {
			wg.Go(func() {
				name := fmt.Sprint("m", i/2)
				answer := r.do("POST", "/api/v1/workflows/orders/events", map[string]any{"topic": "order", "messageId": name, "payload": i / 2}, "Idempotency-Key", name).want(201)
				if answer.header.Get("Idempotency-Replayed") == "true" {
					repeated.Add(1)
				}
			})
		}
		wg.Wait()
		list := pages[client.Event](r, "/api/v1/workflows/orders/events?topic=order")
		if n := r.count(`select count(*) from audit_log where action = 'event.publish'`); len(list) != 20 || repeated.Load() != 20 || n != 20 {
			t.Errorf("%d events, published %d times, with %d repeated answers", len(list), n, repeated.Load())
		}
		for _, e := range list {
			if e.Duplicates != 0 || "m"+string(e.Payload) != e.MessageID {
				t.Errorf("%+v", e)
			}
		}
	})
}

func TestPublishRefusesWhatCannotBeTaken(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", orders)
		long := strings.Repeat("x", maxEventID+1)
		for _, c := range []struct {
			body     any
			pointers []string
		}{
			{map[string]any{}, []string{"/messageId", "/topic"}},
			{map[string]any{"topic": "", "messageId": ""}, []string{"/messageId", "/topic"}},
			{map[string]any{"topic": "nothing", "messageId": "1"}, []string{"/topic"}},
			{map[string]any{"topic": "o\x00", "messageId": "1"}, []string{"/topic"}},
			{map[string]any{"topic": "order", "messageId": long}, []string{"/messageId"}},
			{map[string]any{"topic": "order", "messageId": "a\x00"}, []string{"/messageId"}},
			{map[string]any{"topic": "order", "messageId": 5}, []string{"/messageId"}},
			{map[string]any{"topic": "order", "messageId": "1", "data": 5}, []string{"/data"}},
			{map[string]any{"topic": "order", "messageId": "1", "input": "x"}, []string{"/input"}},
			{map[string]any{"topic": "order", "messageId": "1", "input": map[string]any{}}, []string{"/input/id", "/input/source", "/input/type"}},
			{map[string]any{"topic": "order", "messageId": "1", "input": map[string]any{"source": "a\x00", "type": long, "id": "a\x00"}}, []string{"/input/source", "/input/type", "/input/id"}},
			{map[string]any{"topic": "order", "messageId": "1", "input": map[string]any{"source": "a", "type": "b", "id": "c", "name": "d"}}, []string{"/input/name"}},
		} {
			if p := r.do("POST", "/api/v1/workflows/orders/events", c.body).problem(422, "invalid"); !slices.Equal(pointers(p), c.pointers) {
				t.Errorf("%v: %+v", c.body, p.Errors)
			}
		}
		large := map[string]any{"topic": "order", "messageId": "1", "payload": strings.Repeat("x", testMaxPayload)}
		if p := r.do("POST", "/api/v1/workflows/orders/events", large).problem(413, "too_large"); !slices.Equal(pointers(p), []string{"/payload"}) {
			t.Errorf("%+v", p)
		}
		if n := r.count(`select count(*) from events`) + r.count(`select count(*) from inputs`); n != 0 {
			t.Errorf("what was refused left %d rows", n)
		}
	})
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", orders)
		r.do("POST", "/api/v1/workflows/orders/pause", nil).want(200)
		for i := range 5 {
			r.publish("orders", "order", strconv.Itoa(i))
		}
		r.do("POST", "/api/v1/workflows/orders/events", map[string]any{"topic": "done", "messageId": "x"}).want(201)
		ids := func(query string) (out []string) {
			for _, e := range pages[client.Event](r, "/api/v1/workflows/orders/events"+query) {
				out = append(out, e.MessageID)
			}
			return out
		}
		input := pages[client.Event](r, "/api/v1/workflows/orders/events?topic=order&limit=500")[0].CausedBy[0]
		for query, want := range map[string]string{
			"?limit=2": "x 4 3 2 1 0", "?topic=order&limit=2": "4 3 2 1 0", "?topic=done&limit=1": "x", "?status=pending&limit=6": "x 4 3 2 1 0",
			"?status=consumed&limit=3": "", "?input=" + input + "&limit=1": "4", "?input=nothing&limit=1": "", "?topic=nothing&limit=1": "",
		} {
			if got := strings.Join(ids(query), " "); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		viewer := r.token("vera", userstore.RoleViewer, "read")
		r.as(viewer, "GET", "/api/v1/workflows/orders/events", nil).want(200)
		r.as(viewer, "POST", "/api/v1/workflows/orders/events", map[string]any{"topic": "order", "messageId": "9"}).problem(403, "forbidden")
	})
}
