package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// append writes data to the end of a file.
func (h *hold) append(digest string, asked change) (record, error) {
	file, info, err := h.openOrCreate(asked.path)
	if err != nil {
		return record{}, err
	}
	defer func() { _ = file.Close() }() // it was synced, or the call stays open
	offset, length := info.Size(), int64(len(asked.data))
	if err := h.step("make the call"); err != nil {
		return record{}, err
	}
	call := openCall{Method: "append", Path: asked.path, Offset: offset, Inode: inode(info), Data: asked.data, Size: offset + length}
	if err := h.putCall(digest, call); err != nil {
		return record{}, bookFault(err)
	}
	if err := h.step("append the data"); err != nil {
		return record{}, err
	}
	h.begun = true
	if n, err := file.Write(asked.data); err != nil {
		h.begun = n > 0 || !refused(err)
		return record{}, err
	}
	if err := h.step("sync the data"); err != nil {
		return record{}, err
	}
	if err := file.Sync(); err != nil {
		return record{}, err
	}
	// Another program may have appended in between: the end of what was
	// written is where the system left the position in the file.
	if length > 0 {
		end, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return record{}, err
		}
		offset = end - length
	}
	return record{outcome: applied, offset: offset, size: offset + length}, nil
}

// openOrCreate opens a file for appending; a new one is durable, and empty.
func (h *hold) openOrCreate(name string) (*os.File, fs.FileInfo, error) {
	const flags = os.O_RDWR | os.O_APPEND
	file, info, err := openFile(h.root, name, flags)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, info, err
	}
	if err := h.step("make the folders"); err != nil {
		return nil, nil, err
	}
	if err := makeParents(h.root, name); err != nil {
		return nil, nil, err
	}
	if err := h.step("create the file"); err != nil {
		return nil, nil, err
	}
	created, err := h.root.OpenFile(name, flags|os.O_CREATE|os.O_EXCL|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, nil, err
	}
	if err := created.Close(); err != nil {
		return nil, nil, err
	}
	if err := h.step("sync the folder"); err != nil {
		return nil, nil, err
	}
	if err := syncFolder(h.root, path.Dir(name)); err != nil {
		return nil, nil, err
	}
	return openFile(h.root, name, flags)
}
