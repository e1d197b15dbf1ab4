//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// callTimeout is how long jobs wait for the upstream.
const callTimeout = 8 * time.Second

// promise is something that was asked of Pawl.
type promise struct {
	what  string   // as the upstream calls it
	acked bool     // Pawl said that it has it
	ids   []string // of jobs, as Pawl called it
}

// ledger is what was asked of Pawl, and what it acknowledged.
type ledger struct {
	mu       sync.Mutex
	promises map[string]*promise // guarded by mu
	counts   map[string]int      // guarded by mu
	persons  map[string]int      // guarded by mu: what a person had to do, and why
}

func newLedger() *ledger {
	return &ledger{promises: map[string]*promise{}, counts: map[string]int{}, persons: map[string]int{}}
}

func (l *ledger) ask(what string) *promise {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &promise{what: what}
	l.promises[what] = p
	return p
}

func (l *ledger) ack(p *promise, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.acked = true
	if id != "" && !slices.Contains(p.ids, id) {
		p.ids = append(p.ids, id)
	}
}

func (l *ledger) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
}

// call asks one node; it decodes an answer of success into out.
func (r *run) call(ctx context.Context, n *node, method, path string, body, out any, idempotencyKey string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, content)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if out != nil && resp.StatusCode < 300 {
		return resp.StatusCode, json.NewDecoder(resp.Body).Decode(out)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	if resp.StatusCode >= 300 {
		return resp.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return resp.StatusCode, nil
}

// anyNode draws a node; it may be dead.
func (r *run) anyNode() *node { return r.nodes[rand.IntN(len(r.nodes))] } //nolint:gosec // chance

// insist asks one node after the other until one says yes. With a key of its own
// a request may be repeated without being done twice.
func (r *run) insist(ctx context.Context, method, path string, body, out any, idempotencyKey string) error {
	for {
		status, err := r.call(ctx, r.anyNode(), method, path, body, out, idempotencyKey)
		if err == nil {
			return nil
		}
		if status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusConflict {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

type jobAnswer struct {
	ID string `json:"id"`
}

func (r *run) jobBody(kind, lane, n string, more map[string]any) map[string]any {
	body := map[string]any{"task": "http", "payload": map[string]any{
		"url": fmt.Sprintf("%s/do/%s/%s?n=%s", r.world.url, kind, orNone(lane), n), "body": map[string]any{"n": n}, "timeout": callTimeout.String(),
	}}
	if lane != "" {
		body["lane"] = lane
	}
	maps.Copy(body, more)
	return body
}

func orNone(lane string) string {
	if lane == "" {
		return "none"
	}
	return lane
}

// probe keeps a probing lane full of jobs that are due in time.
func (r *run) probe(ctx context.Context, p *probeLane) {
	for i, due := 0, time.Now().Add(probeAhead); ctx.Err() == nil; i, due = i+1, due.Add(probeEvery) {
		if !pause(ctx, time.Until(due.Add(-probeAhead))) {
			return
		}
		n := fmt.Sprintf("%s-%d", p.name, i)
		what := "probe/" + n
		kept := r.ledger.ask(what)
		r.world.mu.Lock()
		p.due[what] = due
		r.world.mu.Unlock()
		var j jobAnswer
		at := due.UTC().Format(time.RFC3339Nano)
		if err := r.insist(ctx, "POST", "/api/v1/jobs", r.jobBody("probe", p.name, n, map[string]any{"runAt": at}), &j, "probe-"+n); err != nil {
			r.world.mu.Lock()
			delete(p.due, what)
			r.world.mu.Unlock()
			if ctx.Err() == nil {
				r.find("a job was refused: %v", err)
			}
			return
		}
		r.ledger.ack(kept, j.ID)
	}
}

// jobs enqueues jobs of all sorts.
func (r *run) jobs(ctx context.Context, worker int, every time.Duration) {
	rng := rand.New(rand.NewPCG(r.seed, uint64(100+worker))) //nolint:gosec // to be repeated
	for i := 0; pause(ctx, every/2+time.Duration(rng.Int64N(int64(every)))); i++ {
		n := fmt.Sprintf("%s-%d-%d", r.name, worker, i)
		more, lane := map[string]any{}, ""
		if rng.IntN(3) > 0 {
			lane = fmt.Sprintf("%s-lane-%d", r.name, rng.IntN(10))
		}
		if rng.IntN(3) == 0 {
			more["key"] = "key-" + n
		}
		if rng.IntN(4) == 0 {
			more["delay"] = fmt.Sprintf("%dms", 1+rng.IntN(3000))
		}
		if rng.IntN(4) == 0 {
			more["priority"] = rng.IntN(3) - 1
		}
		kept := r.ledger.ask("job/" + n)
		var j jobAnswer
		body := r.jobBody("job", lane, n, more)
		if rng.IntN(3) > 0 {
			if r.insist(ctx, "POST", "/api/v1/jobs", body, &j, "job-"+n) == nil {
				r.ledger.ack(kept, j.ID)
			}
			continue
		}
		// Asked once, without a key: nobody may make two of it.
		if status, err := r.call(ctx, r.anyNode(), "POST", "/api/v1/jobs", body, &j, ""); err == nil && status == http.StatusCreated {
			r.ledger.ack(kept, j.ID)
		}
	}
}

// events publishes events to the workflows.
func (r *run) events(ctx context.Context, workflow string, every time.Duration) {
	for i := 0; pause(ctx, every/2+rand.N(every)); i++ { //nolint:gosec // chance
		n := fmt.Sprintf("%s-%d", workflow, i)
		kept := r.ledger.ask("order/" + n)
		body := map[string]any{"topic": "order", "messageId": n, "payload": map[string]any{"n": n}}
		if r.insist(ctx, "POST", "/api/v1/workflows/"+workflow+"/events", body, nil, "") == nil {
			r.ledger.ack(kept, "")
		}
	}
}

// slots asks for runs of schedules now.
func (r *run) slots(ctx context.Context) {
	for pause(ctx, time.Second+rand.N(3*time.Second)) { //nolint:gosec // chance
		id := r.schedules[rand.IntN(len(r.schedules))] //nolint:gosec // chance
		if _, err := r.call(ctx, r.anyNode(), "POST", "/api/v1/schedules/"+id+"/run", nil, nil, ""); err == nil {
			r.ledger.count("runs of schedules asked for")
		}
	}
}

// feeds lets items appear.
func (r *run) feeds(ctx context.Context) {
	for pause(ctx, 200*time.Millisecond+rand.N(400*time.Millisecond)) { //nolint:gosec // chance
		r.world.grow(r.feedName())
	}
}

func (r *run) feedName() string { return r.name + "-feed" }

func (r *run) tableName() string { return r.name + "-table" }

// person resumes lanes that need one because their process died under them too
// often, as operators do, and notes why.
func (r *run) person(ctx context.Context) {
	for pause(ctx, 2*time.Second) {
		r.resumeAll(ctx)
	}
}

func (r *run) resumeAll(ctx context.Context) {
	for _, l := range r.lanes(ctx) {
		if l.Status != "Needs attention" {
			continue
		}
		if _, err := r.call(ctx, r.anyNode(), "POST", "/api/v1/"+l.Kind+"s/"+l.pathName()+"/resume", nil, nil, ""); err == nil {
			r.ledger.mu.Lock()
			r.ledger.persons[l.Kind+": "+l.Issue]++
			r.ledger.mu.Unlock()
		}
	}
}

type laneAnswer struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	ID     string `json:"id"`
	Status string `json:"status"`
	Issue  string `json:"issue"`
}

func (l laneAnswer) pathName() string {
	if l.Kind == "schedule" {
		return l.ID
	}
	return l.Name
}

func (r *run) lanes(ctx context.Context) []laneAnswer {
	var page struct {
		Items []laneAnswer `json:"items"`
	}
	if _, err := r.call(ctx, r.anyNode(), "GET", "/api/v1/lanes?limit=100", nil, &page, ""); err != nil {
		return nil
	}
	return page.Items
}

// curious asks why all the time, and wants an answer from every node that is
// well.
func (r *run) curious(ctx context.Context, asked *atomic.Int64) {
	for pause(ctx, 500*time.Millisecond) {
		lanes := r.lanes(ctx)
		if len(lanes) == 0 {
			continue
		}
		l, n := lanes[rand.IntN(len(lanes))], r.anyNode() //nolint:gosec // chance
		status, err := r.why(ctx, n, l)
		if status == 0 || status == http.StatusServiceUnavailable {
			continue // nobody is there, or it cannot look
		}
		if err != nil && ctx.Err() == nil {
			r.find("why %s %s: %v", l.Kind, l.Name, err)
			continue
		}
		asked.Add(1)
	}
}

func (r *run) why(ctx context.Context, n *node, l laneAnswer) (int, error) {
	var answer struct {
		Status string `json:"status"`
		Next   string `json:"next"`
	}
	status, err := r.call(ctx, n, "GET", "/api/v1/lanes/"+l.Kind+"/"+l.Name+"/why", nil, &answer, "")
	if err == nil && (answer.Status == "" || answer.Next == "") {
		err = fmt.Errorf("it says nothing: %+v", answer)
	}
	return status, err
}

// pause waits, and reports whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
