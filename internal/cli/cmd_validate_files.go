package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

const definitionHint = "Definitions are *.workflow.ts, *.workflow.js, and documents with a kind in *.yaml and *.yml."

// definition is a file that may define something.
type definition struct {
	shown string // as the user wrote it, or below the folder that the user wrote
	path  string // where it is
}

// definitions are the files that were found, in the order of the arguments,
// each once.
type definitions struct {
	workflows []definition
	yaml      []definition
	strange   []checked // named by the user, but no definitions
	seen      map[string]bool
}

// findDefinitions looks at files and through folders.
func findDefinitions(p *Process, args []string) (*definitions, error) {
	found := &definitions{seen: map[string]bool{}}
	for _, arg := range args {
		info, err := os.Stat(p.path(arg))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no " + arg}
		case err != nil:
			return nil, &pawl.Error{Code: pawl.CodeInvalid, Msg: arg + " cannot be read: " + reason(err)}
		case info.IsDir():
			err = found.addFolder(p, arg)
		default:
			found.addNamed(p, arg)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// addFolder adds what is below a folder, but for what is hidden or belongs to
// a package manager.
func (d *definitions) addFolder(p *Process, folder string) error {
	err := fs.WalkDir(os.DirFS(p.path(folder)), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir():
			d.add(p, filepath.Join(folder, filepath.FromSlash(name)))
		}
		return nil
	})
	if err != nil {
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: folder + " cannot be read: " + reason(err)}
	}
	return nil
}

// addNamed adds a file that the user named, so it should be a definition.
func (d *definitions) addNamed(p *Process, file string) {
	if !d.add(p, file) {
		c := checked{File: file}
		c.refuse(fault{Message: "the file is not a definition", Hint: definitionHint})
		d.strange = append(d.strange, c)
	}
}

// add adds a file if its name is that of a definition.
func (d *definitions) add(p *Process, file string) bool {
	def := definition{shown: file, path: p.path(file)}
	var list *[]definition
	switch {
	case strings.HasSuffix(file, ".workflow.ts"), strings.HasSuffix(file, ".workflow.js"):
		list = &d.workflows
	case strings.HasSuffix(file, ".yaml"), strings.HasSuffix(file, ".yml"):
		list = &d.yaml
	default:
		return false
	}
	if id := filepath.Clean(def.path); !d.seen[id] {
		d.seen[id] = true
		*list = append(*list, def)
	}
	return true
}

// reason is why a file could not be read, without its path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// sentence puts names into a sentence.
func sentence(names []string) string { return strings.Join(names, ", ") }
