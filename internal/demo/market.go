package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	marketKey    = "demo-key"
	marketLimit  = 10              // calls in a period
	marketPeriod = 5 * time.Second // begins with its first call
	marketDays   = 30
	unfitDay     = "soon" // of the one row that fits no table
)

// price is a row of the market, as it is sent.
type price struct {
	Symbol    string    `json:"symbol"`
	Day       string    `json:"day"`
	Quote     quote     `json:"quote"`
	UpdatedAt time.Time `json:"updatedAt"`
}

type quote struct {
	Close float64 `json:"close"`
}

// market is an API on loopback that tells prices page by page, to whoever has
// its key and keeps to its limit. It fails as it was told to.
type market struct {
	*upstream
	tell teller

	mu       sync.Mutex
	prices   []price
	faults   map[int]fault // by page; each happens once
	every    int           // in how many calls one fails; zero is none
	calls    int
	refused  int       // calls over the limit
	window   time.Time // when the period began
	inWindow int       // calls in it
	changes  int
}

// fault is a way to fail.
type fault int

const (
	sound  fault = iota
	broken       // answers 500
	cut          // ends in the middle of the page
)

// openMarket starts a market on a free port, with the prices of the days before
// now.
func openMarket(ctx context.Context, now time.Time, tell teller) (m *market, err error) {
	m = &market{tell: tell, prices: makePrices(now), faults: map[int]fault{}}
	m.upstream, err = openUpstream(ctx, "market", m)
	return m, err
}

// makePrices are prices of 24 symbols for each day, in the order in which they
// became known, and one row that fits nobody.
func makePrices(now time.Time) (list []price) {
	today := now.UTC().Truncate(24 * time.Hour)
	for back := marketDays; back >= 1; back-- {
		day := today.AddDate(0, 0, -back)
		for i := range 24 {
			list = append(list, price{
				Symbol: fmt.Sprintf("%c%c%c", 'A'+i, 'A'+(7*i+3)%26, 'A'+(11*i+5)%26), Day: day.Format(time.DateOnly),
				Quote:     quote{float64(10_000+i*731+(back*(i+3)*37)%900) / 100},
				UpdatedAt: day.Add(21 * time.Hour),
			})
		}
	}
	list[100].Day = unfitDay
	return list
}

// plan makes the market fail at pages, once each.
func (m *market) plan(faults map[int]fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = faults
}

// failEvery makes one call in n fail from now on.
func (m *market) failEvery(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.every = n
}

// holds are all prices that fit, and how many calls were refused because they
// were too many.
func (m *market) holds() (list []price, refused int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	unfit := func(p price) bool { return p.Day == unfitDay }
	return slices.DeleteFunc(slices.Clone(m.prices), unfit), m.refused
}

// change moves the price of one symbol on the last day.
func (m *market) change(now time.Time) price {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	at := len(m.prices) - 1 - m.changes*5%24
	changed := m.prices[at]
	changed.Quote.Close += float64(m.changes*17%60-28) / 100
	changed.UpdatedAt = now.UTC().Truncate(time.Millisecond)
	m.prices = append(slices.Delete(m.prices, at, at+1), changed)
	return changed
}

// ServeHTTP answers ?since=INSTANT&page=1&limit=100.
func (m *market) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Api-Key") != marketKey {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if !m.admit(w.Header(), time.Now()) {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	page, limit := number(r, "page", 1), number(r, "limit", 100)
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since")) // without it, all
	rows, more := m.page(since, page, limit)
	body, err := json.Marshal(map[string]any{"data": rows, "hasMore": more})
	f := m.next(page)
	if err != nil || f == broken {
		m.tell("failed", fmt.Sprintf("the market answered 500 at page %d", page))
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if f == cut {
		m.tell("cut off", fmt.Sprintf("the market died in the middle of page %d", page))
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body) // who does not listen asks again
	if !more {
		m.tell("fetched", fmt.Sprintf("page %d of the market, the last one", page))
	}
}

// admit counts a call, tells the limit, and reports whether the call is within
// it.
func (m *market) admit(h http.Header, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.window) >= marketPeriod {
		m.window, m.inWindow = now, 0
	}
	m.inWindow++
	left := m.window.Add(marketPeriod).Sub(now)
	reset := strconv.Itoa(int((left + time.Second - 1) / time.Second))
	h.Set("RateLimit-Limit", strconv.Itoa(marketLimit))
	h.Set("RateLimit-Remaining", strconv.Itoa(max(0, marketLimit-m.inWindow)))
	h.Set("RateLimit-Reset", reset)
	if m.inWindow <= marketLimit {
		return true
	}
	m.refused++
	h.Set("Retry-After", reset)
	return false
}

// page is a page of the prices that became known since an instant, the oldest
// first.
func (m *market) page(since time.Time, page, limit int) (rows []price, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, _ := slices.BinarySearchFunc(m.prices, since, func(p price, t time.Time) int {
		return p.UpdatedAt.Compare(t)
	})
	known := m.prices[from:]
	begin := min(max(page-1, 0)*limit, len(known))
	end := min(begin+limit, len(known))
	return slices.Clone(known[begin:end]), end < len(known)
}

// next is how the market fails at a page, if it does.
func (m *market) next(page int) fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if f, planned := m.faults[page]; planned {
		delete(m.faults, page)
		return f
	}
	if m.every > 0 && m.calls%m.every == 0 {
		return broken
	}
	return sound
}

// number reads a positive number of the query.
func number(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, 1000)
}
