package subject

import (
	"context"
	"errors"
	"sync"
	"time"
)

// memory is a queue in memory, as small as the protocol allows.
type memory struct {
	mu      sync.Mutex
	jobs    []Job // guarded by mu
	handle  func(seq int)
	twice   bool // handle every job twice
	lose    bool // never handle the last job
	failOne error
}

func (m *memory) Setup(context.Context, Config) error { return nil }

func (m *memory) EnqueueOne(_ context.Context, j Job) error {
	if m.failOne != nil {
		return m.failOne
	}
	return m.EnqueueBulk(context.Background(), []Job{j})
}

func (m *memory) EnqueueBulk(_ context.Context, jobs []Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.jobs = append(m.jobs, jobs...)
	m.drain()
	return nil
}

func (m *memory) Start(_ context.Context, handle func(seq int)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handle = handle
	m.drain()
	return nil
}

// drain handles what is due; m.mu is held.
func (m *memory) drain() {
	if m.handle == nil {
		return
	}
	var rest []Job
	for i, j := range m.jobs {
		if j.RunAt.After(time.Now()) || m.lose && i == len(m.jobs)-1 {
			rest = append(rest, j)
			continue
		}
		m.handle(j.Seq)
		if m.twice {
			m.handle(j.Seq)
		}
	}
	m.jobs = rest
}

func (m *memory) Finished(context.Context) (bool, error) { return true, nil }

func (m *memory) Stop(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handle = nil
	return nil
}

func (m *memory) Cleanup(context.Context) error { return nil }

var errRefused = errors.New("refused")
