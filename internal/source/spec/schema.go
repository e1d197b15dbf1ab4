package spec

import (
	"bytes"
	_ "embed"
)

//go:embed source.schema.json
var schema []byte

// Schema is the JSON Schema (2020-12) of definitions, for editors. It is less
// strict than Parse, which also knows how fields depend on each other.
func Schema() []byte { return bytes.Clone(schema) }
