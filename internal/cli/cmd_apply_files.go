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
	switch {
	case piped && !strings.HasSuffix(a.filename, ".workflow.ts") && !strings.HasSuffix(a.filename, ".workflow.js"):
		return nil, cleanUp, usageError("Add --filename mail.workflow.ts.", "what comes on stdin needs a name that ends with .workflow.ts or .workflow.js")
	case !piped && a.filename != "":
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
	file := definition{shown: a.filename, path: filepath.Join(folder, filepath.Base(a.filename))}
	source, err := io.ReadAll(a.p.Stdin)
	if err == nil {
		err = os.WriteFile(file.path, source, 0o600)
	}
	if err != nil {
		cleanUp()
		return nil, func() {}, fmt.Errorf("keep stdin: %w", err)
	}
	found.workflows = append(found.workflows, file)
	return found, cleanUp, nil
}

// otherKinds tells about YAML files, none of which can be sent to a server. In
// a folder, those that a server reads itself and those that define nothing are
// no mistake.
func (a *applier) otherKinds(files []definition, paths []string) []checked {
	var list []checked
	for _, file := range files {
		named := slices.Contains(paths, file.shown)
		source, err := os.ReadFile(file.path)
		if err != nil {
			list = append(list, refused(file, fault{Message: "the file cannot be read: " + reason(err)}))
			continue
		}
		found := kindsIn(string(source))
		if len(found) == 0 && named {
			list = append(list, refused(file, fault{Message: "the file defines nothing: it has no kind", Hint: definitionHint}))
		}
		for _, k := range found {
			hint := serverFolder(k.Message)
			switch {
			case hint == "":
				k.Message, k.Hint = fmt.Sprintf("this version has no kind %q", k.Message), "Workflows are in *.workflow.ts and *.workflow.js."
				list = append(list, refused(file, k))
			case named:
				k.Message, k.Hint = "a "+k.Message+" is not applied: the server reads it from its own folders", hint
				list = append(list, refused(file, k))
			default:
				a.p.say("%s: left out; the server reads it from its own folders. %s", file.shown, hint)
			}
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
	case "provider":
		return "Start the server with --provider FILE or --provider-dir DIR."
	case kindConnection, "executor":
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
