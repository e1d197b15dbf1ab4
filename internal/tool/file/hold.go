package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// The bookkeeping of a folder; see the package doc.
const (
	books    = ".pawl"
	lockFile = books + "/lock"
	calls    = books + "/calls"
	stage    = books + "/stage"
	doneFile = books + "/done"
)

// makeBooks creates what is missing of the bookkeeping.
func makeBooks(root *os.Root) error {
	for _, folder := range []string{books, calls, stage} {
		if err := makeFolder(root, folder, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// hold is a folder that is locked for one mutation or Reconcile.
type hold struct {
	root *os.Root
	step func(name string) error
	lock *os.File
	turn chan struct{}

	// begun is set before the effect of a mutation begins. From then on
	// nobody can say that it did not happen.
	begun bool
}

// hold waits for its turn in this process and then for the lock, which other
// processes may have. To make missing bookkeeping anew is right for a mutation,
// but not for who wants to know what is in it.
func (f *Folder) hold(ctx context.Context, anew bool) (*hold, error) {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, interrupted(context.Cause(ctx))
	}
	root, err := f.open()
	if err != nil {
		<-f.turn
		return nil, err
	}
	h := &hold{root: root, step: f.step, turn: f.turn}
	if err := h.prepare(ctx, anew); err != nil {
		h.release()
		return nil, systemFault(err, "lock the folder of the connection")
	}
	return h, nil
}

func (h *hold) prepare(ctx context.Context, anew bool) error {
	if anew {
		if err := makeBooks(h.root); err != nil {
			return err
		}
	}
	if _, err := h.root.Lstat(calls); errors.Is(err, fs.ErrNotExist) {
		return &connector.Error{
			Class: pawl.ClassPrecondition, Code: "no_evidence",
			Msg: "the record of earlier calls, the folder " + books + ", is gone", Hint: "Look into the files whether it happened.",
		}
	}
	return h.acquire(ctx)
}

// release lets go of everything. Closing the lock file unlocks it, as does the
// end of the process.
func (h *hold) release() {
	if h.lock != nil {
		_ = h.lock.Close() // nothing is written to it
	}
	_ = h.root.Close() // nothing is written through it
	<-h.turn
}

func (h *hold) acquire(ctx context.Context) error {
	lock, err := h.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	h.lock = lock
	const longest = 50 * time.Millisecond
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return interrupted(context.Cause(ctx))
		}
	}
}

// makeFile makes a new file in stage, durable but for its name, which is lost
// if it is not renamed.
func (h *hold) makeFile(name string, data []byte, mode fs.FileMode) error {
	name = path.Join(stage, name)
	if err := h.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := h.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
