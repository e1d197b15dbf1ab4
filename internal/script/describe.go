package script

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl"
)

// Description is what a script declares. It was produced by the script and is
// checked by whoever deploys it.
type Description struct {
	// Kind is what the default export is: "object", or else a mistake, such
	// as "undefined" when there is none.
	Kind string `json:"kind"`
	// Config is the default export as JSON, or null when it is no object.
	// JSON has no functions, so they are missing.
	Config json.RawMessage `json:"config"`
	// Functions are the paths of the functions, in the order of the source:
	// of the definition itself, and of each producer and consumer, such as
	// consumers.addRow.prepare.
	Functions []string `json:"functions"`
}

// HasFunction reports whether the script has a function at a path.
func (d Description) HasFunction(path string) bool { return slices.Contains(d.Functions, path) }

// describeCPU is what the top level of a script may take when it is deployed.
// It cannot wait for anything, so more wall time only helps busy machines.
const describeCPU = 5 * time.Second

// Describe loads a script, without calling any of its handlers, and returns
// what it declares. The script can reach nothing meanwhile. Errors are those
// of Run.
func (p *Pool) Describe(ctx context.Context, program *Program) (Description, error) {
	limits := DefaultLimits()
	limits.CPU, limits.Wall, limits.Heap = describeCPU, 3*describeCPU, min(limits.Heap, p.cfg.Heap)
	result, err := p.run(ctx, Request{Program: program, Now: describeTime()}, nil, limits)
	if err != nil {
		return Description{}, err
	}
	var d Description
	if err := json.Unmarshal(result.Value, &d); err != nil {
		return Description{}, &pawl.Error{Code: pawl.CodeInternal, Op: "describe a script", Msg: "the worker's answer cannot be read", Err: err}
	}
	if d.Kind == "" {
		return Description{}, fmt.Errorf("%w: no description", ErrWorkerCrashed)
	}
	return d, nil
}

// describeTime is the instant that top-level code sees when it is described:
// always the same, because a definition must not depend on it.
func describeTime() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }
