package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// poet is a graph behind a URL, as examples/poet/poet.py is one: it writes one
// poem for each idempotency key, and tells the same one when it is asked again.
type poet struct {
	*upstream
	tell teller

	mu    sync.Mutex
	poems map[string]*poem // by key
	lose  int              // answers that are still to be lost
	lost  int              // answers
}

// poem is what the poet wrote for a key.
type poem struct {
	text  string
	asked int // how often
}

// openPoet starts a poet on a free port.
func openPoet(ctx context.Context, tell teller) (p *poet, err error) {
	p = &poet{tell: tell, poems: map[string]*poem{}}
	p.upstream, err = openUpstream(ctx, "poet", p)
	return p, err
}

// loseAnswers loses the next answers.
func (p *poet) loseAnswers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = n
}

// asked is how often the poet was asked with a key; zero if it never was.
func (p *poet) asked(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if poem := p.poems[key]; poem != nil {
		return poem.asked
	}
	return 0
}

// counts are how often the poet was asked, for how many poems, and how many
// answers it lost.
func (p *poet) counts() (asked, poems, lost int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, poem := range p.poems {
		asked += poem.asked
	}
	return asked, len(p.poems), p.lost
}

// keys are those for which there is a poem.
func (p *poet) keys() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.poems))
}

// ServeHTTP writes a poem.
func (p *poet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var run struct {
		Input struct {
			Topic string `json:"topic"`
		} `json:"input"`
		ScheduledFor time.Time `json:"scheduledFor"`
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" || json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&run) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text, lost := p.write(key, fmt.Sprintf("Of %s I sing, for %s has come.", run.Input.Topic, run.ScheduledFor.Local().Format(time.TimeOnly)))
	if lost {
		p.tell("lost", "the response from the poet")
		panic(http.ErrAbortHandler)
	}
	p.tell("wrote", "the poet: "+text)
	answerJSON(w, http.StatusOK, map[string]any{
		"ok": true, "output": map[string]string{"poem": text},
		"usage": []map[string]any{{"unit": "poem", "model": "pencil", "inputTokens": 4, "outputTokens": 9, "costUsd": 0.0012}},
	})
}

// write is the poem for a key, and whether its answer gets lost.
func (p *poet) write(key, text string) (poemText string, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.poems[key] == nil {
		p.poems[key] = &poem{text: text}
	}
	p.poems[key].asked++
	if lost = p.lose > 0; lost {
		p.lose--
		p.lost++
	}
	return p.poems[key].text, lost
}
