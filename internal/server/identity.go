package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/pawlrun/pawl/internal/store"
)

// identity is who this process is among the nodes of a database.
type identity struct {
	id   string
	file *os.File // holds the lock for as long as the process lives
}

// identify reads the node's id from the data folder and locks it. Whoever has
// the lock knows that no other living process has the id, so it may take over
// at once what the process before it left. A second process with the same data
// folder gets an id of its own, for its lifetime only.
func identify(dataDir string) (identity, error) {
	f, err := os.OpenFile(filepath.Join(dataDir, "node.id"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return identity{}, fmt.Errorf("open node id: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return identity{id: store.NewID()}, nil
		}
		return identity{}, fmt.Errorf("lock node id: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		_ = f.Close()
		return identity{}, fmt.Errorf("read node id: %w", err)
	}
	if id, err := uuid.Parse(strings.TrimSpace(string(text))); err == nil {
		return identity{id: id.String(), file: f}, nil
	}
	id := store.NewID() // new, or damaged: a new id only delays a takeover
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(id+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return identity{}, fmt.Errorf("write node id: %w", err)
	}
	return identity{id: id, file: f}, nil
}

func (i identity) close() {
	if i.file != nil {
		_ = i.file.Close()
	}
}
