package file

import (
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

type appendResult struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"` // where the data begins in the file
	Size   int64  `json:"size"`   // of the file with the data
}

type writeResult struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// result is what a method answers when the record is its outcome.
func (r record) result(method, path string) (json.RawMessage, error) {
	if method == "append" {
		return encode(appendResult{Path: path, Offset: r.offset, Size: r.size})
	}
	return encode(writeResult{Path: path, Size: r.size})
}

// change makes the mutation of a call, once for each key.
func (f *Folder) change(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	if c.Key == "" {
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "no_key", NotApplied: true, Msg: "a mutation needs an idempotency key"}
	}
	parse, doing := parseAppend, "append to"
	if c.Method == "write" {
		parse, doing = parseWrite, "write"
	}
	asked, err := parse(c.Args)
	if err != nil {
		return nil, err
	}
	h, err := f.hold(ctx, true)
	if err != nil {
		return nil, err
	}
	defer h.release()
	r, err := h.changeOnce(ctx, c, asked)
	if err != nil {
		fault := pathFault(err, doing, asked.path)
		fault.NotApplied = fault.NotApplied && !h.begun
		return nil, fault
	}
	return r.result(c.Method, asked.path)
}

// changeOnce makes the change unless there is a record of its key.
func (h *hold) changeOnce(ctx context.Context, c connector.Call, asked change) (record, error) {
	digest := digest(c.Key)
	if err := h.settle(); err != nil {
		return record{}, bookFault(err)
	}
	finished, err := h.finished()
	if err != nil {
		return record{}, bookFault(err)
	}
	if r, known := find(finished, digest); known {
		return r, repeated(r)
	}
	if err := ctx.Err(); err != nil {
		return record{}, interrupted(err)
	}
	var r record
	if c.Method == "append" {
		r, err = h.append(digest, asked)
	} else {
		r, err = h.write(digest, asked)
	}
	if err != nil {
		return record{}, err
	}
	// It happened and is durable. If it cannot be recorded, the call stays
	// open and is settled, to the same end, before the next.
	if h.finish(digest, r) == nil && h.step("drop the call") == nil {
		_ = h.dropCall(digest, false)
	}
	return r, nil
}

// repeated is what is wrong with calling again with a key that has a record:
// nothing, if it was applied.
func repeated(r record) error {
	switch r.outcome {
	case applied:
		return nil
	case withdrawn:
		return &connector.Error{
			Class: pawl.ClassTransient, Code: "withdrawn", NotApplied: true,
			Msg: "the call came too late: it was already reported as not having happened",
		}
	default:
		return &connector.Error{
			Class: pawl.ClassIndeterminate, Code: "unclear",
			Msg: "it can no longer be determined whether an earlier call with this key happened", Hint: "Look into the file.",
		}
	}
}

// Reconcile tells what became of an append or a write; see the package doc.
func (f *Folder) Reconcile(ctx context.Context, c connector.Call) (connector.Answer, error) {
	if c.Method != "append" && c.Method != "write" || c.Key == "" {
		return connector.Answer{}, &connector.Error{
			Class: pawl.ClassInternal, Code: "no_key", Msg: "only an append or a write with its idempotency key can be asked about",
		}
	}
	h, err := f.hold(ctx, false)
	if err != nil {
		return connector.Answer{}, unanswered(err)
	}
	defer h.release()
	r, err := h.lookUp(digest(c.Key))
	if err != nil {
		return connector.Answer{}, unanswered(err)
	}
	switch r.outcome {
	case applied:
		result, err := r.result(c.Method, pathOf(c.Args))
		return connector.Answer{State: connector.Applied, Result: result}, err
	case withdrawn:
		return connector.Answer{State: connector.NotApplied}, nil
	default:
		return connector.Answer{State: connector.Later}, nil
	}
}

// unanswered is why there is no answer. That nothing was done about the
// question says nothing about the call.
func unanswered(err error) error {
	fault := bookFault(err)
	fault.NotApplied = false
	return fault
}

// lookUp returns the record of a call, which it withdraws if there is none. An
// old record counts even if another call cannot be settled.
func (h *hold) lookUp(digest string) (record, error) {
	unsettled := h.settle()
	finished, err := h.finished()
	if err != nil {
		return record{}, err
	}
	if r, known := find(finished, digest); known {
		return r, nil
	}
	if unsettled != nil {
		return record{}, unsettled
	}
	r := record{outcome: withdrawn}
	return r, h.finish(digest, r)
}

// pathOf is the path in the arguments of a call that was accepted before.
func pathOf(raw json.RawMessage) string {
	var a readArguments
	_ = json.Unmarshal(raw, &a) // it was, when the call was made
	path, err := cleanPath(a.Path)
	if err != nil && a.Path != nil {
		return *a.Path
	}
	return path
}
