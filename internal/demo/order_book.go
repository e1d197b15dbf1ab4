package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// orderBook is what the desk knows of wishes and of the orders for them.
type orderBook struct {
	tell  teller
	start string // makes ids of this start unlike those of any other

	mu     sync.Mutex
	wishes []wish // without an order, the oldest first
	made   int
	orders map[string]order // by idempotency key
	posts  map[string]int   // how often an order was asked for, by wish
	lose   map[string]bool  // wishes whose order is taken and whose answer is lost
}

// wish is something that somebody wants to be ordered.
type wish struct {
	ID    string `json:"id"`
	Thing string `json:"thing"`
	size  string // small or large
}

const (
	small = "small"
	large = "large"
)

// order is an order that the desk took.
type order struct {
	Number int    `json:"number"`
	Wish   string `json:"wish"`
	Thing  string `json:"thing"`
	lost   bool   // its answer
}

func newOrderBook(tell teller) *orderBook {
	return &orderBook{
		tell: tell, start: time.Now().UTC().Format("0102-150405"),
		orders: map[string]order{}, posts: map[string]int{}, lose: map[string]bool{},
	}
}

// routes are the paths of the book; others go to the desk.
func (b *orderBook) routes(others http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /wishes", b.listWishes)
	mux.HandleFunc("POST /orders", b.takeOrder)
	mux.HandleFunc("GET /orders/{key}", b.findOrder)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]bool{"ok": true})
	})
	mux.Handle("/", others)
	return mux
}

// make adds a wish and returns its id. The answer to its order is lost if that
// is wanted.
func (b *orderBook) make(size, thing string, lost bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made++
	w := wish{ID: fmt.Sprintf("wish-%s-%d", b.start, b.made), Thing: thing, size: size}
	b.wishes = append(b.wishes, w)
	if lost {
		b.lose[w.ID] = true
	}
	return w.ID
}

// placed returns the orders for a wish, and how often one was asked for.
func (b *orderBook) placed(wish string) (orders []order, posts int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.orders {
		if o.Wish == wish {
			orders = append(orders, o)
		}
	}
	return orders, b.posts[wish]
}

// open is how many wishes of a size have no order.
func (b *orderBook) open(size string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ofSize(size))
}

// ofSize expects mu.
func (b *orderBook) ofSize(size string) []wish {
	list := []wish{}
	for _, w := range b.wishes {
		if w.size == size {
			list = append(list, w)
		}
	}
	return list
}

func (b *orderBook) listWishes(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	list := b.ofSize(r.URL.Query().Get("size"))
	b.mu.Unlock()
	answerJSON(w, http.StatusOK, map[string]any{"items": list})
}

func (b *orderBook) takeOrder(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var asked order
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&asked) != nil || asked.Wish == "" || key == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o := b.enter(key, asked)
	if o.lost {
		b.tell("lost", o.Thing+" was ordered; the response from the desk was lost")
		panic(http.ErrAbortHandler)
	}
	b.tell("ordered", fmt.Sprintf("%s, as number %d", o.Thing, o.Number))
	answerJSON(w, http.StatusCreated, o)
}

// enter writes an order down, once for each key.
func (b *orderBook) enter(key string, o order) order {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts[o.Wish]++
	if known, ok := b.orders[key]; ok {
		known.lost = false // the second answer arrives
		return known
	}
	o.Number, o.lost = len(b.orders)+1, b.lose[o.Wish]
	b.orders[key] = o
	b.wishes = slices.DeleteFunc(b.wishes, func(w wish) bool { return w.ID == o.Wish })
	delete(b.lose, o.Wish)
	return o
}

func (b *orderBook) findOrder(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	o, ok := b.orders[r.PathValue("key")]
	b.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	b.tell("healed", "the desk found the order for "+o.Thing+" by its key; not sent again")
	answerJSON(w, http.StatusOK, o)
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who does not listen asks again
}
