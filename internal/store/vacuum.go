package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	pawl "github.com/pawlrun/pawl"
)

// A SQLite file keeps room for what is written next: a sixteenth of it, and a
// megabyte. Giving that back would only make it grow again.
const (
	sparePart  = 16
	sparePages = 256
)

// GiveBack makes a SQLite file up to so many pages smaller, if it has more room than
// it should keep. It returns how many bytes that was, and whether there are more.
// Files that cannot, see Vacuum, and PostgreSQL are left as they are.
func (db *DB) GiveBack(ctx context.Context, most int) (bytes int64, more bool, err error) {
	if db.sqliteFile == nil || db.sqliteFile.sim != nil {
		return 0, false, nil
	}
	var mode, pages, free, page int64
	state := func(ctx context.Context, tx *Tx) error {
		return tx.QueryRow(ctx, `select (select auto_vacuum from pragma_auto_vacuum()), (select page_count from pragma_page_count()),
			(select freelist_count from pragma_freelist_count()), (select page_size from pragma_page_size())`).Scan(&mode, &pages, &free, &page)
	}
	if err := db.Read(ctx, state); err != nil {
		return 0, false, fmt.Errorf("measure free pages: %w", err)
	}
	const incremental = 2
	surplus := free - max(sparePages, pages/sparePart)
	if mode != incremental || surplus <= 0 {
		return 0, false, nil
	}
	n := int64(1) // in few sizes: every size is another statement
	for n*2 <= min(surplus, int64(most)) {
		n *= 2
	}
	before := pages
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf(`pragma incremental_vacuum(%d)`, n)); err != nil {
			return fmt.Errorf("give pages back: %w", err)
		}
		return state(ctx, tx)
	}, Lazy)
	given := before - pages
	return max(0, given) * page, err == nil && given > 0 && surplus > n, err
}

// Vacuum writes a SQLite file anew, which no process has open: it is as small then as
// what is in it, and from then on gives back what becomes free. It needs as much room
// on the disk as the file has. It returns how large the file was and is.
func Vacuum(ctx context.Context, rawURL string) (was, is int64, err error) {
	path, ok := SQLitePath(rawURL)
	if !ok {
		return 0, 0, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "vacuum", Msg: "the database is PostgreSQL, which makes room by itself",
			Hint: "To give it back to the disk run VACUUM FULL in psql while no server is running.",
		}
	}
	if was, err = sizeOf(path); err != nil {
		return 0, 0, &pawl.Error{Code: pawl.CodeNotFound, Op: "vacuum", Msg: "there is no database at " + path, Hint: "Check --data and --database."}
	}
	lock, err := lockFile(path+".lock", "pawl migrate")
	if err != nil {
		return 0, 0, err
	}
	defer lock.Close() //nolint:errcheck // lets the lock go
	wrap := (&DB{dialect: sqliteDB{}, sqliteFile: &lite{path: path}}).wrap
	if room, known := (&DB{sqliteFile: &lite{path: path}}).Room(); known && room < was {
		return was, was, &pawl.Error{
			Code: pawl.CodeConflict, Op: "vacuum", Msg: fmt.Sprintf("the disk has room for %d bytes, and writing %s anew may take %d", room, path, was),
			Hint: "Make room on the disk first.",
		}
	}
	db, err := sql.Open("sqlite", liteDSN(path, "auto_vacuum(INCREMENTAL)"))
	if err != nil {
		return was, was, err
	}
	for _, text := range []string{`vacuum`, `pragma wal_checkpoint(truncate)`} {
		if _, err = db.ExecContext(ctx, text); err != nil {
			_ = db.Close()
			return was, was, wrap(fmt.Errorf("vacuum %s: %w", path, err))
		}
	}
	if err := db.Close(); err != nil {
		return was, was, wrap(fmt.Errorf("vacuum %s: %w", path, err))
	}
	is, err = sizeOf(path)
	return was, is, err
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
