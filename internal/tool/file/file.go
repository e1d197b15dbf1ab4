package file

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Folder is the connection to one folder.
type Folder struct {
	path string        // absolute
	turn chan struct{} // full while a mutation of this process goes on

	// step is called before each step of a mutation and of settling. Tests
	// fail or crash there; else it does nothing.
	step func(name string) error
}

// New makes the connection that a definition describes:
//
//	root: ./outbox   # or dir, folder, path; relative to the definition's folder
func New(s *connector.Settings) (connector.Connection, bool) {
	var written struct {
		Root definition.Secret `json:"root" definition:"required,also=dir,also=folder,also=path"`
	}
	if !s.Read(&written) {
		return nil, false
	}
	path := definition.Within(s.Folder(), written.Root.Value)
	if s.CheckOnly { // the folder is made by the server
		return &Folder{path: path}, true
	}
	folder, err := Open(path)
	if err != nil {
		s.Add(written.Root.Pointer, "the folder %s cannot be used: %s", pawl.Quote(written.Root.Written), connector.Reason(err))
		return nil, false
	}
	return folder, true
}

// Open makes a connection to a folder, which is created if it is missing.
// Others than the owner can neither look into a new folder nor change it.
func Open(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	// From here on, a missing .pawl means that somebody removed it. Without
	// the right to write, the folder can still be read from.
	if err := makeBooks(root); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil, err
	}
	return &Folder{path: path, turn: make(chan struct{}, 1), step: func(string) error { return nil }}, nil
}

// Methods lists read, list, append and write.
func (f *Folder) Methods() []connector.Method {
	return []connector.Method{
		{Name: "read"},
		{Name: "list"},
		{Name: "append", Mutation: true, Reconciles: true},
		{Name: "write", Mutation: true, Reconciles: true},
	}
}

// Call reads or changes the folder. Its errors are *connector.Error.
func (f *Folder) Call(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted(err)
	}
	switch c.Method {
	case "read":
		return f.read(ctx, c.Args)
	case "list":
		return f.list(ctx, c.Args)
	case "append", "write":
		return f.change(ctx, c)
	}
	return nil, &connector.Error{
		Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
		Msg: "a file connection has no method " + pawl.Quote(c.Method), Hint: "The methods are append, list, read, write.",
	}
}

// open opens the folder for one call. It is not kept open, so that a folder
// that was moved away and put back, or mounted late, works again.
func (f *Folder) open() (*os.Root, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, &connector.Error{
			Class: pawl.ClassPrecondition, Code: "no_folder", NotApplied: true,
			Msg: "the folder of the connection is missing", Hint: "Create the folder that root names, or mount its disk.",
		}
	}
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, systemFault(err, "open the folder of the connection")
	}
	return root, nil
}

// encode makes a result. What is encoded here always can be.
func encode(result any) (json.RawMessage, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: "the result cannot be encoded", Err: err}
	}
	return text, nil
}
