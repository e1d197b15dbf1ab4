package quota

import (
	"path/filepath"
	"slices"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// Load reads the providers of files and of the *.yaml and *.yml files of
// folders; hidden files and folders below them are not read. Secrets come from
// the environment, which getenv reads, and from files.
//
// It fails with pawl.ErrInvalid, whose fields tell every fault of every file
// with its place.
func Load(files, dirs []string, getenv func(string) string) (*Providers, error) {
	l := loading{found: &Providers{byDomain: map[string]Provider{}}, seen: map[string]bool{}}
	for _, file := range files {
		documents, faults := definition.ReadFile(file, getenv)
		l.add(documents, faults, []string{kindProvider})
	}
	for _, dir := range dirs {
		documents, faults := definition.ReadFolder(dir, "providers", getenv)
		l.add(documents, faults, []string{kindProvider, "connection", "executor", "prices", "schedule", "source"})
	}
	if len(l.faults) > 0 {
		return nil, definition.Invalid("read providers", definition.InOrder(l.faults))
	}
	return l.found, nil
}

// loading is what was found so far.
type loading struct {
	found  *Providers
	faults []pawl.Field
	seen   map[string]bool // definitions, by their places: a file may be named twice
}

// add takes the providers among documents, whose kinds may be those given.
func (l *loading) add(documents []definition.Document, faults []pawl.Field, kinds []string) {
	for _, doc := range documents {
		switch {
		case doc.Kind == kindProvider:
			if l.first(doc.Place("")) {
				faults = append(faults, l.provider(doc)...)
			}
		case !slices.Contains(kinds, doc.Kind):
			faults = append(faults, doc.Fault("/kind", "this is %s, not a provider. %s", pawl.Quote(doc.Kind),
				pawl.Suggest(doc.Kind, []string{kindProvider}, "Files of providers say kind: provider.")))
		}
	}
	for _, fault := range faults {
		if !slices.Contains(l.faults, fault) {
			l.faults = append(l.faults, fault)
		}
	}
}

// first reports whether a place was not read before.
func (l *loading) first(at pawl.Place) bool {
	if path, err := filepath.Abs(at.File); err == nil {
		at.File = path
	}
	seen := l.seen[at.String()]
	l.seen[at.String()] = true
	return !seen
}

const kindProvider = "provider"

func (l *loading) provider(doc definition.Document) []pawl.Field {
	p, faults := readProvider(doc)
	if len(faults) > 0 {
		return faults
	}
	if other, twice := l.found.byDomain[p.Domain]; twice {
		return []pawl.Field{doc.Fault("/domain", "the domain %s has a provider already, at %s", p.Domain, other.Place)}
	}
	l.found.byDomain[p.Domain] = p
	if p.credential != nil {
		l.found.secrets.add(p.Domain, p.credential.value)
	}
	return nil
}
