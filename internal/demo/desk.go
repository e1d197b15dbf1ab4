package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// desk is the upstream of the demo: an order desk on loopback that answers as
// it was told to, and remembers who came when.
type desk struct {
	url    string
	server *http.Server

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
func openDesk(ctx context.Context) (*desk, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open order desk: %w", err)
	}
	d := &desk{url: "http://" + listener.Addr().String(), plans: map[string][]reply{}, visits: map[string][]visit{}}
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.server.Serve(listener) }() // it ends with close
	return d, nil
}

func (d *desk) close() { _ = d.server.Close() }

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

// forget makes room for another round.
func (d *desk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.plans)
	clear(d.visits)
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
