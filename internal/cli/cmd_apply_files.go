package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stdinPath is how the user names stdin.
const stdinPath = "-"

// find looks for definitions. What came on stdin is kept in a file, which
// cleanUp removes.
func (a *applier) find(paths []string) (found *definitions, cleanUp func(), err error) {
	cleanUp = func() {}
	named := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == stdinPath })
	piped := len(named) < len(paths)
	if !piped && a.filename != "" {
		return nil, cleanUp, usageError("Name files with -f.", "--filename is the name of what comes on stdin")
	}
	if found, err = findDefinitions(a.p, named); err != nil || !piped {
		return found, cleanUp, err
	}
	folder, err := os.MkdirTemp("", "pawl-apply-")
	if err != nil {
		return nil, cleanUp, fmt.Errorf("keep stdin: %w", err)
	}
	cleanUp = func() { _ = os.RemoveAll(folder) } // the system tidies it up otherwise
	if err = a.keepStdin(found, folder); err != nil {
		cleanUp()
		return nil, func() {}, err
	}
	return found, cleanUp, nil
}

// keepStdin puts what came on stdin into a file of a folder. Without a name it
// is YAML, which says what it defines.
func (a *applier) keepStdin(found *definitions, folder string) error {
	source, err := io.ReadAll(a.p.Stdin)
	if err != nil {
		return fmt.Errorf("keep stdin: %w", err)
	}
	name := a.filename
	if name == "" && len(kindsIn(string(source))) > 0 {
		name = "stdin.yaml"
	}
	file := definition{shown: name, path: filepath.Join(folder, filepath.Base(name))}
	switch {
	case strings.HasSuffix(name, ".workflow.ts"), strings.HasSuffix(name, ".workflow.js"):
		found.workflows = append(found.workflows, file)
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		found.yaml = append(found.yaml, file)
	default:
		return usageError("Add --filename mail.workflow.ts.", "what comes on stdin needs a name that ends with .workflow.ts or .workflow.js, unless it is YAML with a kind")
	}
	if err := os.WriteFile(file.path, source, 0o600); err != nil {
		return fmt.Errorf("keep stdin: %w", err)
	}
	return nil
}

// checkDocuments checks the YAML files and keeps what can be sent. In a folder,
// files that a server reads itself and those that define nothing are no
// mistake.
func (a *applier) checkDocuments(files []definition, paths []string) (list []checked) {
	for _, def := range files {
		file, err := readYAML(def)
		if err != nil {
			list = append(list, refused(def, fault{Message: "the file cannot be read: " + reason(err)}))
			continue
		}
		named := slices.Contains(paths, def.shown)
		if len(file.kinds) == 0 {
			if named {
				list = append(list, refused(def, fault{Message: "the file defines nothing: it has no kind", Hint: definitionHint}))
			}
			continue
		}
		results, send := file.check(nil)
		list = append(append(list, results...), a.served(file, named)...)
		a.documents = append(a.documents, send...)
	}
	slices.SortStableFunc(a.documents, func(x, y applicable) int { // calendars and sources before schedules
		return slices.Index(yamlKinds(), x.kind) - slices.Index(yamlKinds(), y.kind)
	})
	return list
}

// served tells about the definitions that are not sent, because the server
// reads them itself.
func (a *applier) served(file yamlFile, named bool) (list []checked) {
	for _, k := range kindsIn(string(file.text)) {
		hint := serverFolder(k.Message)
		switch {
		case hint == "":
		case named:
			k.Message, k.Hint = "a "+k.Message+" is not applied: the server reads it from its own folders", hint
			list = append(list, refused(file.definition, k))
		default:
			a.p.say("%s: left out; the server reads it from its own folders. %s", file.shown, hint)
		}
	}
	return list
}

func refused(file definition, f fault) checked {
	c := checked{File: file.shown}
	c.refuse(f)
	return c
}

// serverFolder says where the server finds a kind that it never takes over the
// API, because it may name secrets; empty for any other kind.
func serverFolder(kind string) string {
	switch kind {
	case kindProvider:
		return "Start the server with --provider FILE or --provider-dir DIR."
	case kindConnection, kindExecutor, kindPrices:
		return "Start the server with --connection-dir DIR."
	}
	return ""
}

// kindsIn finds the kinds of the documents in a YAML file: each a fault whose
// message is the kind, at its place.
func kindsIn(source string) []fault {
	var list []fault
	for _, m := range regexp.MustCompile(`(?m)^kind:[ \t]*["']?([\w-]+)`).FindAllStringSubmatchIndex(source, -1) {
		list = append(list, fault{Line: 1 + strings.Count(source[:m[0]], "\n"), Column: 1, Message: source[m[2]:m[3]]})
	}
	return list
}
