package file

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// largestRead is in bytes: a script has to hold what it reads.
const largestRead = 4 << 20

type readResult struct {
	Path       string `json:"path"`
	Text       string `json:"text"`
	Size       int    `json:"size"`
	ModifiedAt string `json:"modifiedAt"`
}

// read answers the text of a file.
func (f *Folder) read(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	var a readArguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return nil, err
	}
	path, err := cleanPath(a.Path)
	if err != nil {
		return nil, err
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read from
	file, info, err := openFile(root, path, os.O_RDONLY)
	if err != nil {
		return nil, pathFault(err, "read", path)
	}
	defer func() { _ = file.Close() }() // only read from
	if err := budget.Reserve(ctx, 4*largestRead); err != nil {
		return nil, interrupted(err)
	}
	text, err := io.ReadAll(io.LimitReader(file, largestRead+1))
	switch {
	case err != nil:
		return nil, pathFault(err, "read", path)
	case len(text) > largestRead:
		return nil, logicFault("too_large", "", "read %s: the file has more than the %d bytes that can be read", pawl.Quote(path), largestRead)
	case !utf8.Valid(text):
		return nil, logicFault("not_text", "", "read %s: the file is not UTF-8 text", pawl.Quote(path))
	}
	return encode(readResult{Path: path, Text: string(text), Size: len(text), ModifiedAt: pawl.FormatTime(info.ModTime())})
}
