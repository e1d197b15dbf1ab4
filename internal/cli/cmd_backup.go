package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

func newBackupCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the SQLite database, even while the server is running",
		Long: "Writes a consistent copy of the database to FILE and verifies it. If a server is running, it\n" +
			"makes the copy without stopping; otherwise the database file is read directly. FILE is\n" +
			"written completely or not at all.\n\n" +
			"To restore, put the copy into an empty data folder as pawl.db and start a server on it. Back\n" +
			"up PostgreSQL with pg_dump.",
		Example: "  pawl backup pawl-$(date +%F).db\n" +
			"  mkdir restored && cp pawl-2026-11-15.db restored/pawl.db && pawl serve --data restored",
		GroupID: groupTools, Args: takes(1, 1),
	}
	b := &backer{p: p, flags: addSettingFlags(cmd, forClient|forOffline)}
	cmd.Flags().BoolVar(&b.force, "force", false, "overwrite FILE if it exists")
	b.out = addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return b.run(cmd.Context(), args[0]) }
	return cmd
}

// backer makes one backup.
type backer struct {
	p     *Process
	flags *settingFlags
	force bool
	out   *outputFlag

	set *resolved
	bar progressLine
}

func (b *backer) run(ctx context.Context, name string) (err error) {
	if b.set, err = b.flags.load(b.p); err != nil {
		return err
	}
	target := b.p.path(name)
	if err := b.checkTarget(target); err != nil {
		return err
	}
	b.bar = progressLine{p: b.p}
	defer b.bar.end()
	// Beside the target, so that it can be moved into place whole.
	tmp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".part-")
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // it was moved, or is worth nothing
	defer tmp.Close()           //nolint:errcheck // closed below if it counts
	if err := b.fill(ctx, tmp); err != nil {
		return err
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	contents, err := store.CheckFile(ctx, tmp.Name())
	if err != nil {
		return err
	}
	if err := b.place(tmp.Name(), target); err != nil {
		return err
	}
	b.bar.end()
	return b.report(name, contents)
}

func (b *backer) checkTarget(target string) error {
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write backup: %w", err)
	case !info.Mode().IsRegular():
		return usageError("Name a file that is to be made.", "%s is not a file", target)
	}
	if path, ok := store.SQLitePath(b.set.server.Database); ok {
		if own, err := os.Stat(path); err == nil && os.SameFile(own, info) {
			return usageError("Name another file.", "%s is the database itself", target)
		}
	}
	if !b.force {
		return taken(target)
	}
	return nil
}

func taken(target string) error {
	return &pawl.Error{Code: pawl.CodeConflict, Op: "write backup", Msg: target + " is there already", Hint: "Name another file, or use --force to write over it."}
}

// fill gets the copy: from the server that was named, else from the file if
// nobody has it open, else from the server that has.
func (b *backer) fill(ctx context.Context, tmp *os.File) error {
	path, isFile := store.SQLitePath(b.set.server.Database)
	there := false
	if isFile {
		_, err := os.Stat(path)
		there = err == nil
	}
	if b.set.origin["server"] != "" || isFile && !there {
		err := b.download(ctx, b.set.url, tmp)
		if pawl.ErrorCode(err) != pawl.CodeUnreachable || !there || !client.Local(b.set.url) {
			return err
		}
	}
	err := store.BackupFile(ctx, b.set.server.Database, tmp.Name())
	if !errors.Is(err, pawl.ErrConflict) {
		return err
	}
	url := urlOf(store.ServerOf(path).Addr, "")
	if !client.Local(url) { // whoever wrote that file is not told the token
		return err
	}
	return b.download(ctx, url, tmp)
}

func (b *backer) download(ctx context.Context, url string, tmp *os.File) error {
	at := *b.set
	if at.url != url { // the file of the lock names it, so it gets the token beside that file only
		at.url, at.token, at.tokenFile, at.found = url, "", "", nil
		if path, ok := store.SQLitePath(at.server.Database); ok {
			at.server.Data = filepath.Dir(path)
		}
	}
	token, err := at.findToken()
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{URL: url, Token: token, UserAgent: userAgent, Hints: hints()})
	if err != nil {
		return err
	}
	defer c.Close()
	body, size, err := c.Backup(ctx)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was read
	n, err := io.Copy(tmp, &counted{body, size, b.bar.show, 0})
	if err != nil || n == 0 {
		return &pawl.Error{Code: pawl.CodeUnavailable, Op: "read backup", Msg: "the copy was interrupted", Hint: "Try again.", Err: err}
	}
	return nil
}

// counted tells how much was read.
type counted struct {
	io.Reader
	size int64
	show func(text string, done, total int64)
	read int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	c.show("copied", c.read>>10, c.size>>10)
	return n, err
}

// place moves the copy to its name; without force it fails rather than take the
// place of a file that came meanwhile.
func (b *backer) place(tmp, target string) error {
	var err error
	if b.force {
		err = os.Rename(tmp, target)
	} else if err = os.Link(tmp, target); errors.Is(err, os.ErrExist) {
		return taken(target)
	} else if err != nil { // a file system without links
		err = os.Rename(tmp, target)
	}
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	dir, err := os.Open(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	defer dir.Close() //nolint:errcheck // only read
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}

func (b *backer) report(name string, c store.FileContents) error {
	if b.out.machine() {
		raw, err := json.Marshal(map[string]any{"file": name, "tables": c.Tables, "rows": c.Rows, "bytes": c.Bytes})
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		return writeMachine(b.p.Stdout, b.out.format, raw)
	}
	_, err := fmt.Fprintf(b.p.Stdout, "%s: %d rows of %d tables, %s, checked\n", name, c.Rows, c.Tables, roughSize(c.Bytes))
	return err
}

// roughSize is a size as people say it.
func roughSize(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
}
