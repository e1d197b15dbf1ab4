package definition

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
)

// ReadFolder reads the *.yaml and *.yml files of a folder in the order of their
// names; what is for messages only and says whose folder it is. Folders below
// it, hidden files and what is no file are left out. Secrets come from the
// environment that getenv reads. The documents without faults are returned
// whatever is wrong with others.
func ReadFolder(dir, what string, getenv func(string) string) (documents []Document, faults []pawl.Field) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, []pawl.Field{wholeFile(dir, "the folder of %s cannot be read: %s", what, reason(err))}
	}
	for _, entry := range entries {
		name, ext := entry.Name(), filepath.Ext(entry.Name())
		if ext != ".yaml" && ext != ".yml" || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			continue
		}
		found, wrong := ReadFile(file, getenv)
		documents, faults = append(documents, found...), append(faults, wrong...)
	}
	return documents, faults
}

// ReadFile reads one file of definitions, like ReadFolder.
func ReadFile(file string, getenv func(string) string) ([]Document, []pawl.Field) {
	text, err := readRegular(file, LargestFile)
	if err != nil {
		return nil, []pawl.Field{wholeFile(file, "the file cannot be read: %s", err)}
	}
	documents, err := Read(file, text)
	for i := range documents {
		documents[i].Getenv = getenv
	}
	return documents, FieldsOf(err)
}

// InOrder sorts faults by their files and places.
func InOrder(faults []pawl.Field) []pawl.Field {
	slices.SortStableFunc(faults, func(a, b pawl.Field) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}

// FieldsOf are the faults that an error of this package tells.
func FieldsOf(err error) []pawl.Field {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Fields
	}
	return nil
}
