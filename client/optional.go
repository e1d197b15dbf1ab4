package client

import (
	"bytes"
	"encoding/json"
)

// Optional is a field of a change. One that is absent leaves what is there; null,
// which is a nil value, clears it.
type Optional[T any] struct {
	Set   bool
	Value *T
}

// IsZero reports whether the field is absent.
func (g Optional[T]) IsZero() bool { return !g.Set }

// MarshalJSON writes the value or null.
func (g Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(g.Value) }

// UnmarshalJSON reads a value or null.
func (g *Optional[T]) UnmarshalJSON(raw []byte) error {
	*g = Optional[T]{Set: true}
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	g.Value = new(T)
	return json.Unmarshal(raw, g.Value)
}
