package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
)

func newPromoteCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "promote --to URL",
		Short: "Move all data from the SQLite file to PostgreSQL",
		Long: "Copies all data in the SQLite file, including the tables of sources, to an empty PostgreSQL\n" +
			"database, compares the two, and marks the file so that no server starts on it again. Stop\n" +
			"the server first. If the command is interrupted, run it again: it starts over, or finishes\n" +
			"what is left.\n\n" +
			"You can leave the password out of the URL: PGPASSWORD and ~/.pgpass are used.",
		Example: "  createdb pawl\n" +
			"  pawl promote --to postgres://pawl@db.example.com/pawl\n" +
			"  pawl serve --database postgres://pawl@db.example.com/pawl",
		GroupID: groupTools, Args: takes(0, 0),
	}
	m := &promoter{p: p, flags: addSettingFlags(cmd, forOffline)}
	cmd.Flags().StringVar(&m.to, "to", "", "move to the PostgreSQL database at `URL`")
	cmd.Flags().BoolVar(&m.undo, "undo", false, "make the SQLite file usable again; PostgreSQL is not changed")
	m.out = addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context(), cmd.UseLine()) }
	return cmd
}

// promoter moves one installation.
type promoter struct {
	p     *Process
	flags *settingFlags
	to    string
	undo  bool
	out   *outputFlag
}

func (m *promoter) run(ctx context.Context, usage string) error {
	set, err := m.flags.load(m.p)
	if err != nil {
		return err
	}
	if err := m.check(set, usage); err != nil {
		return err
	}
	from, err := store.Open(ctx, set.server.Database, store.Options{Holder: "pawl promote", Promoting: true})
	if err != nil {
		return stillServed(err)
	}
	defer from.Close() //nolint:errcheck // what counts was committed
	if m.undo {
		return m.takeBack(ctx, from)
	}
	to, err := store.Open(ctx, m.to, store.Options{Promoting: true})
	if err != nil {
		return unusable(err)
	}
	defer to.Close() //nolint:errcheck // what counts was committed
	bar := progressLine{p: m.p}
	done, err := store.Promote(ctx, from, to, store.PromoteOptions{
		Tables:   source.CopyTables,
		Progress: func(table string, rows, total int64) { bar.show("rows copied, now "+table, rows, total) },
	})
	bar.end()
	if err != nil {
		return err
	}
	return m.report(done, to.String())
}

func (m *promoter) check(set *resolved, usage string) error {
	scheme, _, _ := strings.Cut(m.to, ":")
	switch {
	case m.undo && m.to != "":
		return usageError("Usage: "+usage, "--undo goes without --to")
	case !m.undo && scheme != "postgres" && scheme != "postgresql":
		return usageError("Usage: "+usage, "--to needs the URL of a PostgreSQL database, such as postgres://USER@HOST/DATABASE")
	}
	path, ok := store.SQLitePath(set.server.Database)
	if !ok {
		return &pawl.Error{Code: pawl.CodeConflict, Op: "promote", Msg: "the database is not a SQLite file: " + withoutPassword(set.server.Database), Hint: "Name the file to move with --database sqlite:PATH or --data FOLDER."}
	}
	if _, err := os.Stat(path); err != nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "promote", Msg: "there is no database at " + path, Hint: "Check --data and --database."}
	}
	return nil
}

// stillServed says what to do about a file that somebody has.
func stillServed(err error) error {
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeConflict {
		told := *e
		told.Op, told.Hint = "promote", "Stop it first: what it writes now would be left behind."
		return &told
	}
	return err
}

// unusable says what to do about a database that something else lives in.
func unusable(err error) error {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "prepare the new database", Msg: "Pawl's tables cannot be made there", Hint: "Use an empty database of its own, which the user may create tables in.", Err: err}
}

func (m *promoter) takeBack(ctx context.Context, from *store.DB) error {
	undone, err := from.UndoPromotion(ctx)
	if err != nil {
		return err
	}
	if !undone {
		return &pawl.Error{Code: pawl.CodeConflict, Op: "undo the promotion", Msg: "the file was not moved anywhere", Hint: "It can be used as it is."}
	}
	m.p.say("The file counts again, as it was when it was left. Stop every server on PostgreSQL: else work is done twice.")
	return nil
}

func (m *promoter) report(done store.PromoteResult, to string) error {
	for _, name := range done.Left {
		m.p.say("note: the table %s belongs to no source and was not copied", name)
	}
	if done.Resumed {
		m.p.say("An earlier promotion was finished.")
	}
	if m.out.machine() {
		raw, err := json.Marshal(map[string]any{"to": to, "tables": append([]store.Copied{}, done.Tables...), "notCopied": append([]string{}, done.Left...), "resumed": done.Resumed})
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		return writeMachine(m.p.Stdout, m.out.format, raw)
	}
	rows := int64(0)
	for _, t := range done.Tables {
		rows += t.Rows
	}
	if _, err := fmt.Fprintf(m.p.Stdout, "%d rows of %d tables are in %s, compared and equal\n", rows, len(done.Tables), to); err != nil {
		return err
	}
	m.p.say("The file is not used any more. Start with: pawl serve --database %s", withoutPassword(m.to))
	return nil
}
