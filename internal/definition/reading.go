package definition

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/redact"
)

// Reading is a document that is being read, with the faults that were found so
// far.
type Reading struct {
	Document
	Faults
	known   []string // fields of the document that somebody reads
	secrets []redact.Secret
}

// Open begins to read the document.
func (d Document) Open() *Reading {
	return &Reading{Document: d, Faults: Faults{file: d.File, root: d.root}, known: []string{"kind"}}
}

// Read puts fields of the document into a struct; see Document.Check. Several
// structs may share a document. It reports whether the document is without
// faults so far.
func (r *Reading) Read(into any) bool {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("definition: decode into %T, which is not a pointer to a struct", into))
	}
	r.Know(decoder{r}.members(r.Document.root, target.Elem(), "")...)
	return !r.Any()
}

// Know says that fields of the document are read by others.
func (r *Reading) Know(names ...string) { r.known = append(r.known, names...) }

// Unknown notes every field of the document that nobody reads as a fault.
func (r *Reading) Unknown() { decoder{r}.unknown(r.Document.root, r.known, "") }

// OK reports whether no fault was found so far.
func (r *Reading) OK() bool { return !r.Any() }

// Secrets are the values that were put into the texts read so far.
func (r *Reading) Secrets() []redact.Secret { return r.secrets }

// Folder is the one that the file of the definition is in; paths in the
// definition are relative to it.
func (d Document) Folder() string { return filepath.Dir(d.File) }

// unknown notes fields that are not known.
func (d decoder) unknown(n *node, known []string, pointer string) {
	slices.Sort(known)
	known = slices.Compact(known)
	for _, field := range n.named {
		switch {
		case slices.Contains(known, field.name):
		case len(d.reading.list) == mostFaults:
			d.reading.more++ // to look for similar names takes time
		default:
			hint := pawl.Suggest(field.name, known, "The fields are "+strings.Join(known, ", ")+".")
			d.reading.addAt(field.place, pointer+Pointer(field.name), "unknown field %s. %s", pawl.Quote(field.name), hint)
		}
	}
}
