package contract

import (
	"bytes"
	"encoding/json"
)

// Given is a field of a change. One that is absent leaves what is there; null,
// which is a nil value, clears it.
type Given[T any] struct {
	Set   bool
	Value *T
}

// IsZero reports whether the field is absent.
func (g Given[T]) IsZero() bool { return !g.Set }

// MarshalJSON writes the value or null.
func (g Given[T]) MarshalJSON() ([]byte, error) { return json.Marshal(g.Value) }

// UnmarshalJSON reads a value or null.
func (g *Given[T]) UnmarshalJSON(raw []byte) error {
	*g = Given[T]{Set: true}
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	g.Value = new(T)
	return json.Unmarshal(raw, g.Value)
}
