package file

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// settle brings every open call to an end, so that none is open when the next
// begins. It can be stopped at any step and done again.
func (h *hold) settle() error {
	open, err := openCalls(h.root)
	if err != nil {
		return err
	}
	for _, digest := range open {
		if err := h.settleCall(digest); err != nil {
			return err
		}
	}
	if err := h.clearStage(); err != nil {
		return err
	}
	finished, err := h.finished()
	if err != nil {
		return err
	}
	return h.forget(finished)
}

func (h *hold) settleCall(digest string) error {
	finished, err := h.finished()
	if err != nil {
		return err
	}
	if _, known := find(finished, digest); known {
		return h.dropCall(digest, false)
	}
	call, valid, err := h.getCall(digest)
	if err != nil {
		return err
	}
	r, happened := record{outcome: lost}, true
	switch {
	case valid && call.Method == "append":
		r, happened, err = h.settleAppend(call)
	case valid && call.Method == "write":
		r, happened, err = h.settleWrite(digest, call)
	}
	if err == nil && happened {
		err = h.finish(digest, r)
	}
	if err != nil {
		return err
	}
	if err := h.step("drop the call"); err != nil {
		return err
	}
	// If it did not happen, nothing says so but that the call is not open.
	return h.dropCall(digest, !happened)
}

// settleAppend tells by the end of the file what became of an append, and cuts
// off a part of its data. happened is false if it did not happen.
func (h *hold) settleAppend(c openCall) (r record, happened bool, err error) {
	gone := record{outcome: lost}
	file, info, err := openFile(h.root, c.Path, os.O_RDWR)
	if replaced(err) {
		return gone, true, nil
	}
	if err != nil {
		return record{}, false, err
	}
	defer func() { _ = file.Close() }() // it was synced
	if inode(info) != c.Inode || info.Size() < c.Offset {
		return gone, true, nil
	}
	tail := make([]byte, min(info.Size()-c.Offset, int64(len(c.Data))))
	if _, err := file.ReadAt(tail, c.Offset); err != nil && !errors.Is(err, io.EOF) {
		return record{}, false, err
	}
	switch {
	case !bytes.HasPrefix(c.Data, tail):
		return gone, true, nil
	case len(tail) == len(c.Data):
		r = record{outcome: applied, offset: c.Offset, size: c.Size}
	default:
		if err := h.step("cut back"); err != nil {
			return record{}, false, err
		}
		if err := file.Truncate(c.Offset); err != nil {
			return record{}, false, err
		}
	}
	if err := h.step("sync the file as found"); err != nil {
		return record{}, false, err
	}
	return r, r.outcome == applied, file.Sync()
}

// replaced reports whether opening failed because the file was taken away or
// is something else now.
func replaced(err error) bool {
	for _, sign := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR, errLink, errSpecial} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// settleWrite tells by the content in stage what became of a write.
func (h *hold) settleWrite(digest string, c openCall) (r record, happened bool, err error) {
	_, err = h.root.Lstat(path.Join(stage, contentName(digest)))
	if err == nil {
		return record{}, false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return record{}, false, err
	}
	if err := h.step("sync the folder as found"); err != nil {
		return record{}, false, err
	}
	if err := syncFolder(h.root, path.Dir(c.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return record{}, false, err
	}
	return record{outcome: applied, size: c.Size}, true, nil
}

// clearStage removes what unfinished calls made. No call is open.
func (h *hold) clearStage() error {
	left, err := namesIn(h.root, stage)
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := h.root.Remove(path.Join(stage, name)); err != nil {
			return err
		}
	}
	return nil
}
