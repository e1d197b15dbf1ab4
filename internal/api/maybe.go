package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Maybe is an object of an answer that can be null. A plain pointer would be
// described as one that cannot.
type Maybe[T any] struct{ Value *T }

// MarshalJSON writes the object or null.
func (m Maybe[T]) MarshalJSON() ([]byte, error) { return json.Marshal(m.Value) }

// UnmarshalJSON reads the object or null.
func (m *Maybe[T]) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &m.Value) }

// Schema describes it for the OpenAPI document.
func (Maybe[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[T](), true, ""), {Type: "null"}}}
}
