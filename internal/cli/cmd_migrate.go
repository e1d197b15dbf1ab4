package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

func newMigrateCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database to the schema of this version, or show what that would change",
		Long: "Brings the schema of the database up to date, as a server does when it starts: all of it in\n" +
			"one transaction, or nothing. With --dry-run it only shows what would be changed.\n\n" +
			"A migration that is not breaking only adds to the schema, so servers of the version before\n" +
			"keep working while they are replaced one by one. A breaking one is refused while servers\n" +
			"that it would break are running.\n\n" +
			"With --vacuum a SQLite file is written anew afterwards, while no server has it open: it is as\n" +
			"small as its content then, and from then on the server gives back what becomes free. Files\n" +
			"that this version made do so by themselves.",
		Example: "  pawl migrate --dry-run\n" +
			"  pawl migrate --database postgres://pawl@db.example.com/pawl",
		GroupID: groupTools, Args: takes(0, 0),
	}
	m := &migrator{p: p, flags: addSettingFlags(cmd, forOffline)}
	cmd.Flags().BoolVar(&m.dryRun, "dry-run", false, "show what would be changed, and change nothing")
	cmd.Flags().BoolVar(&m.vacuum, "vacuum", false, "write a SQLite file anew, so that it is as small as its content")
	m.out = addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context()) }
	return cmd
}

// migrator changes the schema of one database, or tells how.
type migrator struct {
	p      *Process
	flags  *settingFlags
	dryRun bool
	vacuum bool
	out    *outputFlag
}

func (m *migrator) run(ctx context.Context) error {
	set, err := m.flags.load(m.p)
	if err != nil {
		return err
	}
	if err := set.server.Validate(); err != nil {
		return set.explain(err)
	}
	if m.dryRun && m.vacuum {
		return usageError("", "--vacuum changes the file, which --dry-run does not")
	}
	var done store.Migrated
	if m.dryRun {
		done, err = store.PlanMigration(ctx, set.server.Database)
	} else {
		log := slog.New(slog.NewTextHandler(m.p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		done, err = store.Migrate(ctx, set.server.Database, store.Options{Log: log, Holder: "pawl migrate"})
	}
	if err != nil {
		return inUse(err)
	}
	var was, is int64
	if m.vacuum {
		if was, is, err = store.Vacuum(ctx, set.server.Database); err != nil {
			return inUse(err)
		}
	}
	if m.out.machine() {
		return m.json(done)
	}
	if err := m.tell(done); err != nil || !m.vacuum {
		return err
	}
	_, err = fmt.Fprintf(m.p.Stdout, "The file was %s and is %s.\n", roughSize(was), roughSize(is))
	return err
}

// inUse says what to do about a file that a server has.
func inUse(err error) error {
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeConflict && e.Reason == "" {
		told := *e
		told.Op, told.Hint = "migrate", "A server migrates the database when it starts. --dry-run works beside it."
		return &told
	}
	return err
}

func (m *migrator) json(done store.Migrated) error {
	raw, err := json.Marshal(map[string]any{
		"database": done.Database, "from": done.Have, "to": max(done.Have, done.Want), "dryRun": m.dryRun,
		"migrations": append([]store.Migration{}, done.Migrations...),
	})
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return writeMachine(m.p.Stdout, m.out.format, raw)
}

func (m *migrator) tell(done store.Migrated) error {
	var b strings.Builder
	switch {
	case done.Have > done.Want:
		fmt.Fprintf(&b, "%s has schema %d, which is newer than that of this version, %d. This version can serve it; there is nothing to do.\n", done.Database, done.Have, done.Want)
	case len(done.Migrations) == 0:
		fmt.Fprintf(&b, "%s has schema %d, that of this version. There is nothing to do.\n", done.Database, done.Have)
	case m.dryRun:
		fmt.Fprintf(&b, "%s has schema %d. These migrations would bring it to %d:\n", done.Database, done.Have, done.Want)
	default:
		fmt.Fprintf(&b, "%s had schema %d. These migrations brought it to %d:\n", done.Database, done.Have, done.Want)
	}
	for _, g := range done.Migrations {
		kind := "adds only"
		if g.Breaking {
			kind = "breaking"
		}
		fmt.Fprintf(&b, "\n%04d_%s: %s, %s\n", g.Version, g.Name, plural(len(g.Statements), "statement"), kind)
		for _, s := range g.Statements {
			first, rest, _ := strings.Cut(s, "\n")
			if rest != "" {
				first = strings.TrimRight(first, " ") + " ..."
			}
			fmt.Fprintf(&b, "  %s\n", first)
		}
	}
	if m.dryRun && len(done.Migrations) > 0 {
		b.WriteString("\nNothing was changed.\n")
	}
	_, err := fmt.Fprint(m.p.Stdout, b.String())
	return err
}
