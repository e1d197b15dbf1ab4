package file

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
)

// openCall is what is about to be done, recorded before it is.
type openCall struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Offset int64  `json:"offset,omitempty"` // append: where the data goes
	Inode  uint64 `json:"inode,omitempty"`  // append: the file that it goes to
	Data   []byte `json:"data,omitempty"`   // append
	Size   int64  `json:"size"`             // of the file afterwards
}

// digest names a key in the bookkeeping, whatever is in the key.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// openCalls are the digests of the calls that are not settled.
func openCalls(root *os.Root) ([]string, error) {
	return namesIn(root, calls)
}

func namesIn(root *os.Root, folder string) ([]string, error) {
	opened, err := root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }() // only read from
	return opened.Readdirnames(-1)
}

// putCall makes a call open, complete and durable at once.
func (h *hold) putCall(digest string, c openCall) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := h.makeFile(digest+".call", text, 0o600); err != nil {
		return err
	}
	if err := h.step("name the call"); err != nil {
		return err
	}
	if err := h.root.Rename(path.Join(stage, digest+".call"), path.Join(calls, digest)); err != nil {
		return err
	}
	if err := h.step("sync the calls"); err != nil {
		return err
	}
	return syncFolder(h.root, calls)
}

// getCall reads an open call. It is not valid if it cannot be understood.
func (h *hold) getCall(digest string) (c openCall, valid bool, err error) {
	text, err := h.root.ReadFile(path.Join(calls, digest))
	if err != nil {
		return openCall{}, false, err
	}
	return c, json.Unmarshal(text, &c) == nil, nil
}

// dropCall removes an open call, durably if it matters.
func (h *hold) dropCall(digest string, durably bool) error {
	if err := h.root.Remove(path.Join(calls, digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !durably {
		return nil
	}
	if err := h.step("sync the removal"); err != nil {
		return err
	}
	return syncFolder(h.root, calls)
}
