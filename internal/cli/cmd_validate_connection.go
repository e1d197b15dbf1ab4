package cli

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool"
)

const kindConnection = "connection"

// header is what every document of a YAML file begins with.
type header struct{ Kind, Name, Type string }

// connectionFile is a YAML file that defines connections.
type connectionFile struct {
	definition
	text        []byte
	connections []header // fewer than there are if the file is no YAML
}

// checkConnections checks those of the YAML files that define connections.
// They are loaded by folders, because a name is taken once in each.
func checkConnections(p *Process, files []definition) []checked {
	var list []checked
	var folders []string
	byFolder := map[string][]connectionFile{}
	for _, def := range files {
		file, ok := readConnections(def)
		if !ok {
			p.say("%s: not checked, because it defines no connection", def.shown)
			continue
		}
		folder := filepath.Dir(def.path)
		if byFolder[folder] == nil {
			folders = append(folders, folder)
		}
		byFolder[folder] = append(byFolder[folder], file)
	}
	for _, folder := range folders {
		list = append(list, checkFolder(p, folder, byFolder[folder])...)
	}
	return list
}

// readConnections reports false for a file that defines no connection. What
// is wrong with a file is for loading to tell.
func readConnections(def definition) (file connectionFile, ok bool) {
	file.definition = def
	text, err := os.ReadFile(def.path)
	if err != nil {
		return file, true
	}
	file.text = text
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var h header
		switch err := decoder.Decode(&h); {
		case errors.Is(err, io.EOF):
			return file, len(file.connections) > 0
		case err != nil: // looked at as text instead
			return file, regexp.MustCompile(`(?m)^kind:\s*["']?connection\b`).Match(text)
		case h.Kind == kindConnection:
			file.connections = append(file.connections, h)
		}
	}
}

// checkFolder loads the connections of a folder and tells about some of its
// files.
func checkFolder(p *Process, folder string, files []connectionFile) []checked {
	missing := map[string]bool{}
	_, err := tool.Load(folder, tool.Env{CheckOnly: true, Getenv: func(name string) string {
		if value := p.Getenv(name); value != "" {
			return value
		}
		missing[name] = true
		return "https://unset.invalid" // fits as an address and as a key
	}})
	faults := map[string][]fault{} // by path
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		for _, field := range e.Fields {
			path, f := placedFault(field.Message)
			faults[path] = append(faults[path], f)
		}
	}
	var list []checked
	for _, file := range files {
		c := checked{File: file.shown, Kind: kindConnection, OK: true, Errors: []fault{}, Warnings: file.unset(missing)}
		for _, f := range faults[filepath.Clean(file.path)] {
			c.refuse(f)
		}
		if !c.OK {
			list = append(list, c)
			continue
		}
		for _, h := range file.connections {
			c.Name, c.summary = h.Name, kindConnection+" "+h.Name+", type "+h.Type
			list = append(list, c)
		}
	}
	return list
}

// unset warns of the environment variables that the server will need.
func (f connectionFile) unset(missing map[string]bool) []fault {
	var list []fault
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if bytes.Contains(f.text, []byte("${"+name+"}")) {
			list = append(list, fault{Message: "the environment variable " + name + " is not set here"})
		}
	}
	return list
}

// placedFault takes "file:line:column: message" apart.
func placedFault(text string) (file string, f fault) {
	if m := regexp.MustCompile(`^(.+?):(\d+):(\d+): ((?s).*)$`).FindStringSubmatch(text); m != nil {
		f.Line, _ = strconv.Atoi(m[2]) // digits; if there are too many the place does not matter
		f.Column, _ = strconv.Atoi(m[3])
		f.Message = m[4]
		return m[1], f
	}
	file, f.Message, _ = strings.Cut(text, ": ")
	return file, f
}
