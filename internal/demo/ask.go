package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"time"

	"github.com/pawlrun/pawl/client"
)

// look is how often something is looked at until it is as it should be.
const look = 100 * time.Millisecond

// await asks until something is so, or the demo ends. What names it, for the
// error.
func (s *stage) await(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		ok, err := is()
		if err != nil {
			return s.ended(ctx, fmt.Errorf("wait until %s: %w", what, err))
		}
		if ok {
			return nil
		}
		if err := pause(ctx, look); err != nil {
			return s.ended(ctx, fmt.Errorf("wait until %s: %w", what, err))
		}
	}
}

// read reads one thing of the API.
func read[T any](ctx context.Context, s *stage, path string) (out T, err error) {
	raw, err := s.api.Get(ctx, path)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}

// mostListed is how many things of a list are read. It is more than the market
// has rows, and a folder that was kept for days holds more of the rest.
const mostListed = 1000

// list reads the newest things of a list of the API.
func list[T any](ctx context.Context, s *stage, path string, query url.Values) ([]T, error) {
	raws, _, err := s.api.List(ctx, path, query, mostListed)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(raws))
	for i, raw := range raws {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// deploy deploys a workflow of the examples.
func (s *stage) deploy(ctx context.Context, from fs.FS, file, name string) error {
	script, err := example(from, file)
	if err != nil {
		return err
	}
	deployed, err := s.api.Deploy(ctx, name, client.ScriptRequest{Script: script, Filename: name + ".workflow.ts"})
	if err != nil {
		return s.ended(ctx, fmt.Errorf("deploy the workflow %s: %w", name, err))
	}
	s.story.note("deployed", "workflow "+name+", "+deployed.What)
	return nil
}
