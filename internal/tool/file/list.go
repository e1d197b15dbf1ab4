package file

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// longestList is how many items one answer has at most.
const longestList = 1000

type listResult struct {
	Path  string     `json:"path"`
	Items []listItem `json:"items"`
	More  bool       `json:"more"` // there are others after the last one
}

type listItem struct {
	Name       string `json:"name"`
	Type       string `json:"type"` // file or folder
	Size       int64  `json:"size"` // in bytes; 0 for a folder
	ModifiedAt string `json:"modifiedAt"`
}

// list answers what is in a folder, sorted by name: what the other methods
// can use, and nothing else.
func (f *Folder) list(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	var a readArguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return nil, err
	}
	name, err := cleanFolder(a.Path)
	if err != nil {
		return nil, err
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read from
	info, err := lstat(root, name)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathFault(err, "list", name)
	}
	entries, err := firstEntries(ctx, root, name, longestList+1)
	if err != nil {
		return nil, pathFault(err, "list", name)
	}
	result := listResult{Path: name, Items: []listItem{}, More: len(entries) > longestList}
	for _, entry := range entries[:min(len(entries), longestList)] {
		if item, ok := describe(root, path.Join(name, entry)); ok {
			result.Items = append(result.Items, item)
		}
	}
	return encode(result)
}

// firstEntries returns the first names of a folder by the alphabet. However
// many there are, it holds few of them at a time.
func firstEntries(ctx context.Context, root *os.Root, name string, limit int) ([]string, error) {
	folder, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // only read from
	var first []string
	for {
		if err := ctx.Err(); err != nil {
			return nil, interrupted(err)
		}
		entries, err := folder.ReadDir(limit)
		for _, entry := range entries {
			if (entry.IsDir() || entry.Type().IsRegular()) && nameFault(entry.Name()) == "" {
				first = append(first, entry.Name())
			}
		}
		slices.Sort(first)
		first = first[:min(len(first), limit)]
		if errors.Is(err, io.EOF) {
			return first, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// describe is not ok if the file is gone by now, or is no longer one.
func describe(root *os.Root, name string) (listItem, bool) {
	info, err := root.Lstat(name)
	if err != nil {
		return listItem{}, false
	}
	item := listItem{Name: path.Base(name), ModifiedAt: pawl.FormatTime(info.ModTime())}
	switch info.Mode().Type() {
	case 0:
		item.Type, item.Size = "file", info.Size()
	case fs.ModeDir:
		item.Type = "folder"
	default:
		return listItem{}, false
	}
	return item, true
}
