package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of what a server may tell about its tools. Past them a tool is left
// out.
const (
	mostTools         = 500
	longestName       = 128      // bytes
	largestDefinition = 64 << 10 // bytes
)

// definition is what a server says about a tool: all that is pinned.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // with sorted names, so that equal schemas are equal texts
	Annotations annotations     `json:"annotations"`
}

// annotations are the hints of a server with the defaults of the protocol
// filled in, so that stating a default is no change.
type annotations struct {
	Title       string `json:"title"`
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive bool   `json:"destructiveHint"`
	Idempotent  bool   `json:"idempotentHint"`
	OpenWorld   bool   `json:"openWorldHint"`
}

// define reads what a server says about a tool.
func define(t *sdk.Tool) (definition, error) {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }
	if t.Name == "" || len(t.Name) > longestName || strings.ContainsFunc(t.Name, odd) {
		return definition{}, fmt.Errorf("its name is empty, longer than %d bytes, or has control characters", longestName)
	}
	schema, err := json.Marshal(t.InputSchema) // names in maps are sorted
	if err != nil {
		return definition{}, fmt.Errorf("read its input schema: %w", err)
	}
	if len(schema)+len(t.Description) > largestDefinition {
		return definition{}, fmt.Errorf("its description and schema have more than %d bytes", largestDefinition)
	}
	d := definition{Name: t.Name, Description: t.Description, InputSchema: schema}
	d.Annotations = annotations{Destructive: true, OpenWorld: true}
	if a := t.Annotations; a != nil {
		d.Annotations.Title, d.Annotations.ReadOnly, d.Annotations.Idempotent = a.Title, a.ReadOnlyHint, a.IdempotentHint
		if a.DestructiveHint != nil {
			d.Annotations.Destructive = *a.DestructiveHint
		}
		if a.OpenWorldHint != nil {
			d.Annotations.OpenWorld = *a.OpenWorldHint
		}
	}
	return d, nil
}

// hash identifies the definition.
func (d definition) hash() string {
	text, err := json.Marshal(d)
	if err != nil { // the schema was encoded before, and nothing else can fail
		panic(err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// lines are the definition in lines that people can compare.
func (d definition) lines() string {
	var b strings.Builder
	if d.Annotations.Title != "" {
		fmt.Fprintf(&b, "title: %s\n", d.Annotations.Title)
	}
	b.WriteString("description:\n")
	for line := range strings.Lines(d.Description) {
		b.WriteString("  " + strings.TrimRight(line, "\r\n") + "\n")
	}
	fmt.Fprintf(&b, "readOnlyHint: %v\ndestructiveHint: %v\nidempotentHint: %v\nopenWorldHint: %v\n",
		d.Annotations.ReadOnly, d.Annotations.Destructive, d.Annotations.Idempotent, d.Annotations.OpenWorld)
	var schema bytes.Buffer
	if json.Indent(&schema, d.InputSchema, "  ", "  ") == nil {
		b.WriteString("inputSchema:\n  " + schema.String() + "\n")
	}
	return b.String()
}

// mutation is the class of a tool: the worse of what the server says and what
// the operator says.
func (cfg config) mutation(d definition) bool {
	return !d.Annotations.ReadOnly || cfg.tools[d.Name].Class == classMutation
}
