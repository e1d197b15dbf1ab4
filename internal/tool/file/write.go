package file

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// contentName is what the new content of a file is called in stage.
func contentName(digest string) string { return digest + ".content" }

// write replaces a file as a whole.
func (h *hold) write(digest string, asked change) (record, error) {
	mode, err := h.modeFor(asked.path)
	if err != nil {
		return record{}, err
	}
	if err := h.step("make the content"); err != nil {
		return record{}, err
	}
	content := contentName(digest)
	if err := h.makeFile(content, asked.data, mode); err != nil {
		return record{}, bookFault(err)
	}
	if err := h.step("make the call"); err != nil {
		return record{}, err
	}
	size := int64(len(asked.data))
	if err := h.putCall(digest, openCall{Method: "write", Path: asked.path, Size: size}); err != nil {
		return record{}, bookFault(err)
	}
	if err := h.step("replace the file"); err != nil {
		return record{}, err
	}
	h.begun = true
	if err := h.root.Rename(path.Join(stage, content), asked.path); err != nil {
		h.begun = !refused(err)
		return record{}, err
	}
	if err := h.step("sync the folder"); err != nil {
		return record{}, err
	}
	return record{outcome: applied, size: size}, syncFolder(h.root, path.Dir(asked.path))
}

// modeFor returns the permissions of the file that will be replaced, which it
// must be allowed to write to, or those of a new one, for which it makes the
// folders.
func (h *hold) modeFor(name string) (fs.FileMode, error) {
	file, info, err := openFile(h.root, name, os.O_WRONLY)
	if err == nil {
		return info.Mode().Perm(), file.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if err := h.step("make the folders"); err != nil {
		return 0, err
	}
	return 0o644, makeParents(h.root, name)
}
