package file

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Test makes a file in the bookkeeping, takes it away again, and so tells that
// the folder can be changed. It waits for its turn like a mutation does. The
// bookkeeping itself is not made anew: that it is missing is evidence.
func (f *Folder) Test(ctx context.Context) (string, error) {
	h, err := f.hold(ctx, false)
	if e, ok := errors.AsType[*connector.Error](err); ok && e.Code == "no_evidence" {
		return "", &connector.Error{
			Class: pawl.ClassPrecondition, Code: "no_books",
			Msg:  "the folder of the connection has no folder " + books + " in it: it cannot be written to, or it was removed",
			Hint: "Give Pawl the right to write into the folder, and start it again.",
		}
	}
	if err != nil {
		return "", err
	}
	defer h.release()
	const name = "test"
	if err := h.makeFile(name, []byte("test\n"), 0o600); err != nil {
		return "", systemFault(err, "write into the folder of the connection")
	}
	if err := h.root.Remove(path.Join(stage, name)); err != nil {
		return "", systemFault(err, "remove what was written into the folder of the connection")
	}
	entries, err := namesIn(h.root, ".")
	if err != nil {
		return "", systemFault(err, "read the folder of the connection")
	}
	return fmt.Sprintf("The folder can be read and written; there are %d names in it.", len(entries)-1), nil // without the bookkeeping
}
