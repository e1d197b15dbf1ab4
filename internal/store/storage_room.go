package store

import (
	"path/filepath"
	"syscall"
)

// Room is how many bytes the disk of a SQLite file has left for it; false where
// nobody can tell, as on PostgreSQL.
func (db *DB) Room() (int64, bool) {
	if db.sqliteFile == nil {
		return 0, false
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(db.sqliteFile.path), &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true //nolint:gosec,unconvert // differs by system
}
