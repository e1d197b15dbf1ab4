//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// world is everything outside: it counts what arrives and what it did about it,
// and goes on with what it began when its caller is gone.
type world struct {
	url    string
	server *http.Server

	mu       sync.Mutex
	rng      *rand.Rand            // guarded by mu
	calm     bool                  // guarded by mu: nothing goes wrong any more
	acts     map[string]*act       // by what was asked for; guarded by mu
	done     map[string]bool       // keys whose effect is there; guarded by mu
	active   map[string]*arrival   // the call that is under way, by lane; guarded by mu
	overlaps []overlap             // guarded by mu
	feeds    map[string][]int64    // when each item appeared, by feed; guarded by mu
	probes   map[string]*probeLane // guarded by mu
	asked    map[string]int        // calls by kind; guarded by mu
	behaved  map[string]int        // what was done to callers; guarded by mu
}

// act is one thing that was asked for, however often.
type act struct {
	kind     string
	lane     string
	arrivals []*arrival
	effects  int
}

// arrival is one call.
type arrival struct {
	what     string // act
	key      string
	at       time.Time
	answered bool // it was told that all went well
}

// overlap is two calls of one lane at once.
type overlap struct {
	lane          string
	first, second string
	same          bool // of one act
	from, at      time.Time
}

func newWorld(seed uint64) (*world, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it lasts as long as the program
	if err != nil {
		return nil, err
	}
	w := &world{
		url: "http://" + listener.Addr().String(), rng: rand.New(rand.NewPCG(seed, 2)), //nolint:gosec // to be repeated
		acts: map[string]*act{}, done: map[string]bool{}, active: map[string]*arrival{}, feeds: map[string][]int64{},
		probes: map[string]*probeLane{}, asked: map[string]int{}, behaved: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /do/{kind}/{lane}", w.do)
	mux.HandleFunc("GET /done", w.lookUp)
	mux.HandleFunc("POST /graph", w.graph)
	mux.HandleFunc("GET /feed/{name}", w.feed)
	mux.HandleFunc("GET /table", w.table)
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(listener) }()
	return w, nil
}

// manner is how a call is treated.
type manner struct {
	name   string
	before time.Duration // until it is done
	refuse int           // this status, and nothing is done
	hang   bool          // nothing is done, and nothing is said
	cut    bool          // it is done, and the connection breaks
	lie    bool          // it is done, and 500 is said
}

func (w *world) draw(kind string) manner {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[kind]++
	m := manner{name: "well"}
	if kind == "probe" || w.calm {
		return m
	}
	switch p := w.rng.Float64(); {
	case p < 0.04:
		m = manner{name: "slow", before: time.Duration(w.rng.IntN(2500)) * time.Millisecond}
	case p < 0.055:
		m = manner{name: "cut after the effect", cut: true}
	case kind == "graph": // it keeps the contract of executors
	case p < 0.07:
		m = manner{name: "429 without effect", refuse: http.StatusTooManyRequests}
	case p < 0.08:
		m = manner{name: "500 after the effect", lie: true}
	case p < 0.085:
		m = manner{name: "hangs", hang: true}
	}
	w.behaved[m.name]++
	return m
}

func (w *world) do(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	kind, lane := r.PathValue("kind"), r.PathValue("lane")
	w.serve(rw, r, kind, lane, kind+"/"+r.FormValue("n"), func() {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(rw, `{"ok":true}`)
	})
}

// graph runs a graph for a slot.
func (w *world) graph(rw http.ResponseWriter, r *http.Request) {
	var asked struct {
		ScheduleID   string `json:"scheduleId"`
		ScheduledFor string `json:"scheduledFor"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	w.serve(rw, r, "graph", "", "graph/"+asked.ScheduleID+"/"+asked.ScheduledFor, func() {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"ok":true,"output":{"poem":"autumn"}}`)
	})
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request, kind, lane, what string, answer func()) {
	m := w.draw(kind)
	a := w.arrive(kind, lane, what, r.Header.Get("Idempotency-Key"))
	gone := r.Context().Done()
	left := make(chan struct{})
	defer close(left)
	go func() { // whoever is gone is not in the lane any more
		select {
		case <-gone:
		case <-left:
		}
		w.leave(lane, a)
	}()
	switch {
	case m.hang:
		select {
		case <-gone:
		case <-time.After(20 * time.Second):
		}
		return
	case m.refuse != 0:
		w.leave(lane, a)
		rw.WriteHeader(m.refuse)
		return
	case m.before > 0:
		time.Sleep(m.before) // also when its caller is gone
	}
	w.effect(what, a.key)
	w.leave(lane, a) // before the caller hears of it and goes on
	switch {
	case m.cut:
		if h, ok := rw.(http.Hijacker); ok {
			if c, _, err := h.Hijack(); err == nil {
				_ = c.Close()
			}
		}
	case m.lie:
		rw.WriteHeader(http.StatusInternalServerError)
	default:
		w.mu.Lock()
		a.answered = r.Context().Err() == nil
		w.mu.Unlock()
		answer()
	}
}

func (w *world) arrive(kind, lane, what, key string) *arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.acts[what]
	if t == nil {
		t = &act{kind: kind, lane: lane}
		w.acts[what] = t
	}
	a := &arrival{what: what, key: key, at: time.Now()}
	t.arrivals = append(t.arrivals, a)
	if lane == "" {
		return a
	}
	if p := w.probes[lane]; p != nil && kind == "probe" && len(t.arrivals) == 1 {
		p.arrived(what, a.at)
	}
	// Whoever waited in vain hangs up a moment before this end hears of it.
	if other := w.active[lane]; other != nil && a.at.Sub(other.at) < callTimeout {
		w.overlaps = append(w.overlaps, overlap{lane: lane, first: other.what, second: what, same: other.what == what, from: other.at, at: a.at})
	}
	w.active[lane] = a
	return a
}

func (w *world) leave(lane string, a *arrival) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[lane] == a {
		delete(w.active, lane)
	}
}

// effect does a thing, once for each key.
func (w *world) effect(what, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done[key] {
		w.done[key] = true
		w.acts[what].effects++
	}
}

// lookUp tells whether a call with a key had its effect.
func (w *world) lookUp(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	there := w.done[r.FormValue("key")]
	w.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	if there {
		_, _ = io.WriteString(rw, `{"items":[{"ok":true}]}`)
		return
	}
	_, _ = io.WriteString(rw, `{"items":[]}`)
}

// feedWindow is how many items a feed shows: more than can appear while anything
// here lasts.
const feedWindow = 600

// grow adds an item to a feed.
func (w *world) grow(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feeds[name] = append(w.feeds[name], time.Now().UnixMilli())
}

func (w *world) items(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.feeds[name])
}

// feed shows the last items of a feed, from the one after a cursor on, in pages.
func (w *world) feed(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	all := w.feeds[r.PathValue("name")]
	fails := !w.calm && w.rng.Float64() < 0.02
	w.mu.Unlock()
	if fails {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	from, _ := strconv.Atoi(r.FormValue("after"))
	from = max(from, len(all)-feedWindow)
	page(rw, from, len(all), func(i int) any { return map[string]any{"id": i, "at": all[i]} })
}

const tableRows = 90

// table is one whose values change every ten seconds.
func (w *world) table(rw http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.FormValue("after"))
	value := w.tableValue()
	page(rw, from, tableRows, func(i int) any { return map[string]any{"id": i, "v": value} })
}

func (w *world) tableValue() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return 0
	}
	return time.Now().Unix() / 10
}

func page(rw http.ResponseWriter, from, all int, item func(int) any) {
	const size = 30
	to := min(from+size, all)
	list := []any{}
	for i := from; i < to; i++ {
		list = append(list, item(i))
	}
	body := map[string]any{"items": list}
	if to < all {
		body["next"] = strconv.Itoa(to)
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(body)
}

// behave well from now on.
func (w *world) calmDown() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = true
}

func (w *world) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []string
	for _, kind := range sortedKeys(w.asked) {
		parts = append(parts, fmt.Sprintf("%d of %s", w.asked[kind], kind))
	}
	return strings.Join(parts, ", ")
}
