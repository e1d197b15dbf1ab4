package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pawlrun/pawl/client"
)

// stage is what scenes play on: the API of the server, the world outside of it,
// and the memory of what happened to their jobs.
type stage struct {
	outside
	api   *client.Client
	story *story
	rooms rooms

	// naming is held for reading while a job is asked for, so that its events
	// are not told before its name is known.
	naming sync.RWMutex
	names  map[string]naming // by job id; guarded by mu

	mu     sync.Mutex
	events map[string][]happening // by job id
	starts map[string]time.Time   // of the attempt under way, by job id
	news   chan struct{}          // closed and replaced at every event
	jobs   int
	again  int // attempts that failed and are to be repeated
}

// naming is what the story knows of a job.
type naming struct {
	name string
	path string // at the desk; empty does not call it
}

func newStage(out outside, st *story, r rooms) *stage {
	return &stage{
		outside: out, story: st, rooms: r,
		names: map[string]naming{}, events: map[string][]happening{}, starts: map[string]time.Time{}, news: make(chan struct{}),
	}
}

// ask gives the server a job. The name is what the story calls it.
func (s *stage) ask(ctx context.Context, name string, spec client.JobRequest) (client.Job, error) {
	return s.askFor(ctx, naming{name: name}, spec)
}

func (s *stage) askFor(ctx context.Context, n naming, spec client.JobRequest) (client.Job, error) {
	s.naming.RLock()
	defer s.naming.RUnlock()
	j, err := s.api.Enqueue(ctx, spec)
	if err != nil {
		return j, s.ended(ctx, fmt.Errorf("ask for %s: %w", n.name, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[j.ID].name == "" {
		s.jobs++
	}
	s.names[j.ID] = n
	return j, nil
}

// payloadOf is the payload of a job; the demo's own are always JSON.
func payloadOf(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// order gives the server a job that calls the order desk.
func (s *stage) order(ctx context.Context, name, path string, body any, spec client.JobRequest) (client.Job, error) {
	spec.Task = "http"
	spec.Payload = payloadOf(map[string]any{"url": s.desk.url + path, "body": body})
	return s.askFor(ctx, naming{name, path}, spec)
}

// observe takes note of an event and tells it.
func (s *stage) observe(h happening) {
	s.naming.Lock() // waits for jobs that are being asked for
	s.mu.Lock()
	n := s.names[h.job.ID]
	if h.what == started {
		s.starts[h.job.ID] = h.at
	}
	h.started = s.starts[h.job.ID]
	s.events[h.job.ID] = append(s.events[h.job.ID], h)
	if h.what == retried && n.name != "" {
		s.again++
	}
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	s.naming.Unlock()
	if visits := s.desk.seen(n.path); len(visits) > 0 {
		h.status = visits[len(visits)-1].status
	}
	if n.name != "" {
		s.story.tell(n.name, h)
	}
}

// end waits until a job has ended for good, and returns how.
func (s *stage) end(ctx context.Context, id string) (happening, error) {
	for {
		s.mu.Lock()
		list, news := s.events[id], s.news
		s.mu.Unlock()
		for _, h := range list {
			if h.what == succeeded || h.what == failed || h.what == cancelled {
				return h, nil
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return happening{}, s.ended(ctx, fmt.Errorf("job %s has not ended: %w", id, context.Cause(ctx)))
		}
	}
}

// success waits until a job has ended, which must be well.
func (s *stage) success(ctx context.Context, id string) (happening, error) {
	h, err := s.end(ctx, id)
	if err == nil && h.what != succeeded {
		return h, fmt.Errorf("job %s %s: %s", id, h.what, h.err)
	}
	return h, err
}

// ended turns whatever went wrong because the demo ended into just that.
func (s *stage) ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause == errEnded { //nolint:errorlint // it is set by this package, unwrapped
		return errEnded
	}
	return err
}

// counts are how many jobs were asked for, and how many attempts failed and
// were repeated.
func (s *stage) counts() (jobs, again int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs, s.again
}

// late is how long after its time an attempt started.
func (h happening) late() time.Duration { return h.started.Sub(h.job.RunAt.Time) }
