package cli

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"

	pawl "github.com/pawlrun/pawl"
	document "github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/price"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/tool"
)

// checkYAML checks the definitions of YAML files.
func checkYAML(p *Process, files []definition, ahead *foresight) []checked {
	var list []checked
	y := folderChecker{p: p, faults: map[string]map[string][]fault{}, unset: map[string]bool{}}
	for _, def := range files {
		file, err := readYAML(def)
		switch {
		case err != nil:
			list = append(list, refused(def, fault{Message: "the file cannot be read: " + reason(err)}))
			continue
		case len(file.kinds) == 0:
			p.say("%s: not checked, because it has no kind", def.shown)
			continue
		}
		own, _ := file.check(ahead)
		list = append(append(list, y.check(file)...), own...)
	}
	return list
}

// folderChecker checks the kinds that a server reads from its own folders.
// They are loaded by folders, because a name is taken once in each.
type folderChecker struct {
	p      *Process
	faults map[string]map[string][]fault // by kind and folder, then by path
	unset  map[string]bool               // environment variables
}

// check tells about the definitions of such kinds in a file.
func (y folderChecker) check(file yamlFile) (list []checked) {
	for _, kind := range []string{kindConnection, kindExecutor, kindProvider, kindPrices} {
		if !file.has(kind) {
			continue
		}
		faults := y.load(kind, filepath.Dir(file.path))[filepath.Clean(file.path)]
		c := checked{File: file.shown, Kind: kind, OK: true, Errors: []fault{}, Warnings: file.unset(y.unset)}
		for _, f := range faults {
			if !slices.Contains(file.faults, f) { // it is told of the file
				c.refuse(f)
			}
		}
		if !c.OK {
			list = append(list, c)
			continue
		}
		for _, doc := range file.documents {
			if doc.Kind != kind {
				continue
			}
			c.Name, c.summary = doc.Name, kind+" "+doc.Name+", type "+doc.Type
			switch kind {
			case kindProvider:
				c.Name, c.summary = doc.Text("/domain"), "provider of "+doc.Text("/domain")
			case kindPrices:
				c.summary = "prices of models"
			}
			list = append(list, c)
		}
	}
	return list
}

// load loads the definitions of one kind in a folder, once, and returns the
// faults by file.
func (y folderChecker) load(kind, folder string) map[string][]fault {
	key := kind + " " + folder
	if known, ok := y.faults[key]; ok {
		return known
	}
	var err error
	switch kind {
	case kindConnection:
		_, err = tool.Load(folder, tool.Env{CheckOnly: true, Getenv: y.getenv})
	case kindExecutor:
		_, err = executor.Load(folder, executor.Env{CheckOnly: true, Getenv: y.getenv})
	case kindProvider:
		_, err = quota.Load(nil, []string{folder}, y.getenv)
	case kindPrices:
		_, err = price.Load(folder)
	}
	faults := map[string][]fault{}
	for _, field := range document.FieldsOf(err) {
		if path := filepath.Clean(field.File); field.Pointer != "/kind" { // what lies beside is checked by itself
			faults[path] = append(faults[path], placedFault(field))
		}
	}
	y.faults[key] = faults
	return faults
}

func (y folderChecker) getenv(name string) string {
	if value := y.p.Getenv(name); value != "" {
		return value
	}
	y.unset[name] = true
	return "https://unset.invalid" // fits as an address and as a key
}

// unset warns of the environment variables that the server will need.
func (f yamlFile) unset(missing map[string]bool) []fault {
	var list []fault
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if bytes.Contains(f.text, []byte("${"+name+"}")) {
			list = append(list, fault{Message: "the environment variable " + name + " is not set here"})
		}
	}
	return list
}

// placedFault is a fault of a file that is named beside it.
func placedFault(f pawl.Field) fault {
	return fault{Line: f.Line, Column: f.Column, Message: f.Message}
}
