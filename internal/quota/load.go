package quota

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	l := loading{found: &Providers{byDomain: map[string]Provider{}}, getenv: getenv, seen: map[string]bool{}}
	for _, file := range files {
		l.file(file, false)
	}
	for _, dir := range dirs {
		l.folder(dir)
	}
	if len(l.faults) > 0 {
		return nil, definition.Invalid("read providers", l.faults)
	}
	return l.found, nil
}

// loading is what was found so far.
type loading struct {
	found  *Providers
	getenv func(string) string
	faults []pawl.Field
	seen   map[string]bool // files, by their absolute paths
}

func (l *loading) refuse(file, format string, values ...any) {
	l.faults = append(l.faults, pawl.Field{Place: pawl.Place{File: file}, Message: fmt.Sprintf(format, values...)})
}

func (l *loading) folder(dir string) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		l.refuse(dir, "the folder of providers cannot be read: %s", reason(err))
	}
	for _, entry := range entries {
		name, ext := entry.Name(), filepath.Ext(entry.Name())
		if (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".") && !entry.IsDir() {
			l.file(filepath.Join(dir, name), true)
		}
	}
}

// file reads one file. A folder may hold definitions of other kinds too.
func (l *loading) file(name string, mixed bool) {
	if path, err := filepath.Abs(name); err == nil {
		if l.seen[path] {
			return
		}
		l.seen[path] = true
	}
	text, err := readRegular(name, definition.LargestFile)
	if err != nil {
		l.refuse(name, "the file cannot be read: %s", err)
		return
	}
	documents, err := definition.Read(name, text)
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		l.faults = append(l.faults, e.Fields...)
	}
	for _, doc := range documents {
		switch {
		case doc.Kind == kindProvider:
			l.provider(doc)
		case !mixed || !slices.Contains(otherKinds(), doc.Kind):
			l.faults = append(l.faults, doc.Fault("/kind", "this is no provider but %s. %s", definition.Quote(doc.Kind),
				definition.Suggest(doc.Kind, []string{kindProvider}, "Files of providers say kind: provider.")))
		}
	}
}

const kindProvider = "provider"

// otherKinds are those that may lie in the same folder.
func otherKinds() []string { return []string{"connection", "executor", "schedule", "source"} }

func (l *loading) provider(doc definition.Document) {
	p, faults := readProvider(doc, resolver{folder: filepath.Dir(doc.File), getenv: l.getenv})
	l.faults = append(l.faults, faults...)
	if len(faults) > 0 {
		return
	}
	if other, twice := l.found.byDomain[p.Domain]; twice {
		l.faults = append(l.faults, doc.Fault("/domain", "the domain %s has a provider already, at %s", p.Domain, other.Place))
		return
	}
	l.found.byDomain[p.Domain] = p
	if p.credential != nil {
		l.found.secrets.add(p.Domain, p.credential.value)
	}
}
