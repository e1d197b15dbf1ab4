package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// longestDone is how large the record of finished calls becomes before its
// older half is forgotten, in bytes. A line has at most 92.
const longestDone = 2 << 20

// outcome is how a call ended.
type outcome string

const (
	applied   outcome = "applied"
	withdrawn outcome = "withdrawn" // it did not happen, and must not any more
	lost      outcome = "lost"      // other programs removed what could tell
)

// record is a line of the finished calls.
type record struct {
	outcome outcome
	offset  int64 // append: where the data went
	size    int64 // of the file afterwards
}

// line is the record as text, with a sum by which a torn line is known.
func (r record) line(digest string) string {
	text := fmt.Sprintf("%s %s %d %d", digest, r.outcome, r.offset, r.size)
	sum := sha256.Sum256([]byte(text))
	return text + " " + hex.EncodeToString(sum[:4]) + "\n"
}

// finished reads the record of finished calls.
func (h *hold) finished() ([]byte, error) {
	text, err := h.root.ReadFile(doneFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// find returns what is recorded about a call. Lines that are not complete do
// not count.
func find(finished []byte, digest string) (record, bool) {
	for rest := finished; ; {
		at := bytes.Index(rest, []byte(digest))
		if at < 0 {
			return record{}, false
		}
		rest = rest[at:]
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		var r record
		if _, err := fmt.Sscanf(string(line), digest+" %s %d %d", &r.outcome, &r.offset, &r.size); err == nil && r.line(digest) == string(line)+"\n" {
			return r, true
		}
		rest = after
	}
}

// finish records how a call ended, durably. Whatever a crash left at the end
// of the file is closed with the end of a line.
func (h *hold) finish(digest string, r record) error {
	if err := h.step("record the outcome"); err != nil {
		return err
	}
	file, err := h.root.OpenFile(doneFile, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	isNew, gap, err := endOf(file)
	if err == nil {
		_, err = file.WriteString(gap + r.line(digest))
	}
	if err == nil {
		err = h.step("sync the outcome")
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil || !isNew {
		return err
	}
	return syncFolder(h.root, books)
}

// endOf returns what has to come between the end of the file and a new line.
func endOf(file *os.File) (isNew bool, gap string, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return true, "", err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil {
		return false, "", err
	}
	if last[0] != '\n' {
		return false, "\n", nil
	}
	return false, "", nil
}

// forget cuts the older half off the record of finished calls if it has grown
// too long.
func (h *hold) forget(finished []byte) error {
	if len(finished) < longestDone {
		return nil
	}
	_, newer, _ := bytes.Cut(finished[len(finished)/2:], []byte("\n"))
	if err := h.makeFile("done", newer, 0o600); err != nil {
		return err
	}
	if err := h.root.Rename(path.Join(stage, "done"), doneFile); err != nil {
		return err
	}
	return syncFolder(h.root, books)
}
