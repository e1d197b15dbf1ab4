package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	pawl "github.com/pawlrun/pawl"
)

// lockFile takes the lock that makes this process the one owner of a SQLite
// file, and writes into it who that is. The kernel lets go of the lock when
// the process ends, however it ends.
func lockFile(path, holder string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open database lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close() //nolint:errcheck // nothing was written
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock database: %w", err)
		}
		other, _ := io.ReadAll(io.LimitReader(f, 512))
		name := strings.TrimSpace(string(other))
		if name == "" {
			name = "another process"
		}
		return nil, &pawl.Error{
			Code: pawl.CodeConflict, Op: "open database", Msg: "the database file is in use by " + name,
			Hint: "Stop it, use another --data folder, or move to PostgreSQL to run several.",
		}
	}
	if holder == "" {
		holder = "pawl"
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintf("%s (process %d)\n", holder, os.Getpid()))); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock database: %w", err)
	}
	return f, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}
