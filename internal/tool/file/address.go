package file

import (
	"path/filepath"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Address is the method and the whole path of its file.
func (f *Folder) Address(c connector.Call) string {
	var what change
	var err error
	switch c.Method {
	case "append":
		what, err = parseAppend(c.Args)
	case "write":
		what, err = parseWrite(c.Args)
	default: // a read
		var a readArguments
		if err = connector.DecodeArguments(c.Args, largestArguments, &a); err == nil {
			what.path, err = cleanFolder(a.Path)
		}
	}
	if err != nil {
		return ""
	}
	return c.Method + " " + filepath.Join(f.path, filepath.FromSlash(what.path))
}
