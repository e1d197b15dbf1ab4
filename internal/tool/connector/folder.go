package connector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// Folder gives each definition in the *.yaml and *.yml files of a folder to add,
// in the order of their names, and returns what is wrong with the files and, after
// add has read them, with the definitions. Folders below it and hidden files are
// not read.
func Folder(dir string, env Env, add func(file string, s *Settings)) (faults []pawl.Field) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return []pawl.Field{{Place: pawl.Place{File: dir}, Message: fmt.Sprintf("the folder of connections cannot be read: %s", Reason(err))}}
	}
	for _, entry := range entries {
		name, ext := entry.Name(), filepath.Ext(entry.Name())
		if ext != ".yaml" && ext != ".yml" || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(dir, name)
		text, fault := readFile(file)
		if fault != "" {
			faults = append(faults, pawl.Field{Place: pawl.Place{File: file}, Message: fault})
		}
		found, wrong := Documents(file, text, env)
		faults = append(faults, wrong...)
		for _, s := range found {
			add(file, s)
			faults = append(faults, s.Faults()...)
		}
	}
	return faults
}

// readFile reads a file of definitions, and nothing of what is no file or too
// large.
func readFile(name string) (text []byte, fault string) {
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return nil, "" // a folder, or something that would block
		}
		if info.Size() > LargestFile {
			return nil, fmt.Sprintf("the file has more than the %d bytes allowed", LargestFile)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Sprintf("the file cannot be read: %s", Reason(err))
	}
	return text, ""
}
