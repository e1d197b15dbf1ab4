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
// the lock knows that no other living process has this file, so it may take over
// at once what the process before it left. A second process with the same data
// folder gets an id of its own, for its lifetime only. That the folder is no copy
// of a living node's, the queue finds out: see queue.Config.Node.
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
	who := identity{file: f}
	if err := who.rename(store.NewID()); err != nil { // new, or damaged: a new id only delays a takeover
		_ = f.Close()
		return identity{}, err
	}
	return who, nil
}

// rename writes another id into the data folder, for the next process: this one
// was somebody else's. A process that has no lock has nothing to write.
func (i *identity) rename(id string) error {
	i.id = id
	if i.file == nil {
		return nil
	}
	if err := i.file.Truncate(0); err != nil {
		return fmt.Errorf("write node id: %w", err)
	}
	if _, err := i.file.WriteAt([]byte(id+"\n"), 0); err != nil {
		return fmt.Errorf("write node id: %w", err)
	}
	return nil
}

func (i identity) close() {
	if i.file != nil {
		_ = i.file.Close()
	}
}
