package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// backupInfix is in the names of copies that are being made beside the file.
// What a crash leaves of them is removed when the file is opened again.
const backupInfix = ".backup-"

// Backup copies the database as it is at one instant, while others go on
// writing. The file that it returns has no name any more: it is gone when the
// caller closes it, or dies. Only SQLite can be copied like this, and one copy
// is made at a time.
func (db *DB) Backup(ctx context.Context) (*os.File, error) {
	if db.sqliteFile == nil {
		return nil, usePgDump(redactURL(db.dsn))
	}
	if !db.sqliteFile.copying.CompareAndSwap(false, true) {
		return nil, &pawl.Error{Code: pawl.CodeConflict, Op: "back up", Msg: "another backup is being made", Hint: "Try again when it is done."}
	}
	defer db.sqliteFile.copying.Store(false)
	f, err := os.CreateTemp(filepath.Dir(db.sqliteFile.path), filepath.Base(db.sqliteFile.path)+backupInfix)
	if err != nil {
		return nil, fmt.Errorf("back up: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // the next start tries again
	if err := vacuumInto(ctx, db.sqliteFile.path, f.Name()); err != nil {
		_ = f.Close()
		return nil, db.wrap(fmt.Errorf("back up: %w", err))
	}
	return f, nil
}

// usePgDump is why Pawl does not copy a PostgreSQL database itself.
func usePgDump(url string) error {
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "back up", Msg: "the database is PostgreSQL, which has a tool of its own for this",
		Hint: "Run: pg_dump --format=custom --file=pawl.dump " + url + " (and pg_restore --dbname=URL pawl.dump to restore it).",
	}
}

// BackupFile copies a SQLite database that no process has open into an empty
// file. It leaves the schema of both as it is, so that a newer program can copy
// before it migrates. While a server has the file it fails with
// pawl.ErrConflict.
func BackupFile(ctx context.Context, rawURL, into string) error {
	path, ok := SQLitePath(rawURL)
	if !ok {
		return usePgDump(redactURL(rawURL))
	}
	if _, err := os.Stat(path); err != nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "back up", Msg: "there is no database at " + path, Hint: "Check --data and --database."}
	}
	lock, err := lockFile(path+".lock", "pawl backup")
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // lets the lock go
	if err := vacuumInto(ctx, path, into); err != nil {
		return (&DB{dialect: sqliteDB{}, sqliteFile: &lite{}}).wrap(fmt.Errorf("back up %s: %w", path, err))
	}
	return nil
}

// SQLitePath is the file of a database URL, if it names one.
func SQLitePath(rawURL string) (path string, ok bool) {
	scheme, rest, _ := strings.Cut(rawURL, ":")
	return strings.TrimPrefix(rest, "//"), scheme == "sqlite"
}

// Holder reads who last locked a SQLite file, as told to Open; empty if nobody
// can be found.
func Holder(path string) string {
	text, err := os.ReadFile(path + ".lock")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// vacuumInto has a connection of its own: the readers may not write anywhere,
// and the writer must not wait. It sees one state and holds nobody up.
func vacuumInto(ctx context.Context, path, into string) error {
	db, err := sql.Open("sqlite", liteDSN(path))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing of it is kept
	_, err = db.ExecContext(ctx, `vacuum into $1`, into)
	return err
}

// FileContents is what CheckFile found.
type FileContents struct {
	Tables int
	Rows   int64
	Bytes  int64
}

// CheckFile reads a SQLite file whole and fails if it is damaged, or is no
// database of Pawl. It changes nothing.
func CheckFile(ctx context.Context, path string) (c FileContents, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return c, fmt.Errorf("check database: %w", err)
	}
	c.Bytes = info.Size()
	db, err := sql.Open("sqlite", liteDSN(path, "query_only(1)")+"&mode=ro")
	if err != nil {
		return c, fmt.Errorf("check database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var verdict string
	if err := db.QueryRowContext(ctx, `pragma integrity_check(1)`).Scan(&verdict); err != nil || verdict != "ok" {
		return c, &pawl.Error{Code: pawl.CodeInternal, Op: "check database", Msg: strings.TrimSpace("the file is damaged: " + verdict), Err: err}
	}
	tables, err := tablesOf(ctx, db)
	if err != nil {
		return c, fmt.Errorf("check database: %w", err)
	}
	ours := false
	for _, name := range tables {
		var n int64
		if err := db.QueryRowContext(ctx, `select count(*) from `+quoteName(name)).Scan(&n); err != nil {
			return c, fmt.Errorf("count rows of %s: %w", name, err)
		}
		c.Tables, c.Rows = c.Tables+1, c.Rows+n
		ours = ours || name == "schema_migrations"
	}
	if !ours {
		return c, &pawl.Error{Code: pawl.CodeInvalid, Op: "check database", Msg: path + " is not a Pawl database"}
	}
	return c, nil
}

func tablesOf(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, `select name from sqlite_master where type = 'table' and name not like 'sqlite\_%' escape '\' order by name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// removeLeftovers removes copies that a crash left beside the file, which this
// process has locked.
func removeLeftovers(path string) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return // they only take space
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+backupInfix) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// quoteName makes an identifier of any name.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
