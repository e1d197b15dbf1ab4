package workflow

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// programsKept bounds the compiled scripts in memory, in bytes. One that is not
// there is compiled again, which takes some milliseconds.
const programsKept = 64 << 20

// configCache keeps the parsed declaration of each workflow with the version
// that it belongs to (A-59..A-61).
type configCache struct {
	mu      sync.Mutex
	entries map[string]configEntry // by workflow id; guarded by mu
}

type configEntry struct {
	version string
	config  Config
	free    bool // a person deployed it
}

// get returns the declaration of a version; load is asked when it is not the
// one that is kept.
func (c *configCache) get(workflowID, version string, load func() (workflowstore.WorkflowVersion, error)) (Config, error) {
	c.mu.Lock()
	e, ok := c.entries[workflowID]
	c.mu.Unlock()
	if ok && e.version == version {
		return e.config, nil
	}
	v, err := load()
	if err != nil {
		return Config{}, err
	}
	config, err := parseConfig(v.Config)
	if err != nil {
		return Config{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]configEntry{}
	}
	c.entries[workflowID] = configEntry{version, config, !v.Confined}
	return config, nil
}

// free reports whether a version is known to be one that a person deployed,
// which it then stays.
func (c *configCache) free(workflowID, version string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[workflowID]
	return e.version == version && e.free
}

// invalidate forgets the declaration of a workflow.
func (c *configCache) invalidate(workflowID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, workflowID)
}

// clear forgets all declarations.
func (c *configCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = nil
}

func parseConfig(raw json.RawMessage) (Config, error) {
	var config Config
	if err := json.Unmarshal(raw, &config); err != nil {
		return Config{}, fmt.Errorf("read the stored declaration: %w", err)
	}
	return config, nil
}

// config returns the declaration of a version of a workflow.
func (s *Service) config(ctx context.Context, tx *store.Tx, workflowID, version string) (Config, error) {
	return s.configs.get(workflowID, version, func() (workflowstore.WorkflowVersion, error) {
		return workflowstore.In(tx).GetWorkflowVersion(ctx, workflowID, version)
	})
}

// programCache keeps the programs that were used last.
type programCache struct {
	most int // bytes

	mu    sync.Mutex
	size  int                      // bytes; guarded by mu
	order *list.List               // of programEntry, the one used last in front; guarded by mu
	found map[string]*list.Element // by workflow id and version; guarded by mu
}

type programEntry struct {
	key     string
	program *script.Program
}

func newProgramCache(most int) *programCache {
	return &programCache{most: most, order: list.New(), found: map[string]*list.Element{}}
}

func (c *programCache) get(key string) (*script.Program, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.found[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(programEntry).program, true
}

func (c *programCache) put(key string, p *script.Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.found[key]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.found[key] = c.order.PushFront(programEntry{key, p})
	c.size += p.Size()
	for c.size > c.most && len(c.found) > 1 {
		oldest := c.order.Back()
		entry := oldest.Value.(programEntry)
		delete(c.found, entry.key)
		c.size -= entry.program.Size()
		c.order.Remove(oldest)
	}
}

// program returns what runs for a version of a workflow. Two workflows with one
// source share it, which is why it is not kept under the workflow.
func (s *Service) program(ctx context.Context, workflowID, version string) (*script.Program, error) {
	if p, ok := s.programs.get(version); ok {
		return p, nil
	}
	var v workflowstore.WorkflowVersion
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		v, err = workflowstore.In(tx).GetWorkflowVersion(ctx, workflowID, version)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, err := s.cfg.Scripts.Compile(ctx, v.Filename, v.Source)
	if err != nil {
		return nil, fmt.Errorf("compile version %s: %w", version, err)
	}
	s.programs.put(version, p)
	return p, nil
}
