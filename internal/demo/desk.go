package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// desk is an order desk on loopback. It takes orders for wishes, and anywhere
// else it answers as it was told to and remembers who came when.
type desk struct {
	*upstream
	book *orderBook

	mu     sync.Mutex
	plans  map[string][]reply // by path; what is left to answer
	visits map[string][]visit // by path
}

// reply is one answer of the desk.
type reply struct {
	status int
	after  time.Duration
}

// visit is one request to the desk.
type visit struct {
	from, to time.Time
	status   int
	key      string // Idempotency-Key
	body     string
}

// openDesk starts a desk on a free port.
func openDesk(ctx context.Context, tell teller) (d *desk, err error) {
	d = &desk{book: newOrderBook(tell), plans: map[string][]reply{}, visits: map[string][]visit{}}
	d.upstream, err = openUpstream(ctx, "order desk", d.book.routes(d))
	return d, err
}

// plan tells the desk how to answer the next requests for a path. After the
// last one, and for other paths, it answers 200 at once.
func (d *desk) plan(path string, replies ...reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plans[path] = replies
}

// seen are the requests for a path that have been answered.
func (d *desk) seen(path string) []visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]visit(nil), d.visits[path]...)
}

// ServeHTTP answers as planned.
func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := visit{from: time.Now(), key: r.Header.Get("Idempotency-Key")}
	var body json.RawMessage
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body) == nil {
		v.body = string(body)
	}
	answer := d.next(r.URL.Path)
	if answer.after > 0 {
		select {
		case <-time.After(answer.after):
		case <-r.Context().Done():
		}
	}
	v.to, v.status = time.Now(), answer.status
	d.mu.Lock()
	d.visits[r.URL.Path] = append(d.visits[r.URL.Path], v)
	d.mu.Unlock()
	w.WriteHeader(answer.status)
}

func (d *desk) next(path string) reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	plan := d.plans[path]
	if len(plan) == 0 {
		return reply{status: http.StatusOK}
	}
	d.plans[path] = plan[1:]
	return plan[0]
}
