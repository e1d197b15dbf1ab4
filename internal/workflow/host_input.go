package workflow

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// causes checks the input that a publish names. A producer must name one, and
// next must not: there it follows from the events that the run took.
func (h *host) causes(ctx context.Context, inputID string) ([]string, error) {
	if !h.rules.register {
		if inputID != "" {
			return nil, violation("input", "publish: next names no inputId; its events come from those that the run took")
		}
		return nil, nil
	}
	if inputID == "" {
		return nil, violation("input", "publish: a producer names the inputId that registerInput returned")
	}
	h.mu.Lock()
	known := h.known[inputID]
	h.mu.Unlock()
	if !known {
		found, err := h.world.knownInput(ctx, inputID)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, violation("input", "publish: %q is not an input of this workflow; use what registerInput returned", cutText(inputID, 60))
		}
		h.know(inputID)
	}
	return []string{inputID}, nil
}

func (h *host) know(inputID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known = map[string]bool{}
	}
	h.known[inputID] = true
}

func (h *host) onRegister(args json.RawMessage) error {
	if !h.rules.register {
		return violation("phase", "ctx.registerInput cannot be used in %s: only producers register inputs", h.phase)
	}
	var in struct{ Source, Type, ID, Title string }
	if err := json.Unmarshal(args, &in); err != nil {
		return violation("input", "registerInput: the arguments are not right: %s", plainJSON(err))
	}
	input, err := newInput(h.scope, in.Source, in.Type, in.ID, in.Title, h.createdBy)
	if err != nil {
		return err
	}
	h.know(input.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.inputs) == maxEvents {
		return violation("input", "registerInput: a run registers at most %d inputs", maxEvents)
	}
	h.inputs = append(h.inputs, input)
	return nil
}

// newInput checks what identifies an input.
func newInput(scope, source, kind, id, title, by string) (eventstore.Input, error) {
	for _, part := range []struct{ name, text string }{{"source", source}, {"type", kind}, {"id", id}} {
		if part.text == "" || len(part.text) > maxInputText || slices.Contains([]byte(part.text), 0) {
			return eventstore.Input{}, violation("input", "registerInput: %s must have 1 to %d bytes", part.name, maxInputText)
		}
	}
	if title = cleanTitle(title); title == "" {
		title = source + " " + kind + " " + id
	}
	return eventstore.Input{
		ID: script.InputID(scope, source, kind, id), WorkflowID: scope,
		Source: source, Type: kind, ExternalID: id, Title: title, CreatedBy: by,
	}, nil
}
