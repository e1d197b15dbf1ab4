package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newPruneCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove history that is older than it is kept",
		Long: "Removes history that is older than --keep of the server says, as the server does every hour by\n" +
			"itself. Nothing is removed that is unfinished, waited for or needed by a rule. With --dry-run it\n" +
			"only shows what would be removed. It needs a token with storage:admin.",
		Example: "  pawl prune --dry-run\n" +
			"  pawl prune\n" +
			"  pawl get storage",
		GroupID: groupTools, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	dry := cmd.Flags().Bool("dry-run", false, "only show what would be removed")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		done, err := pruneAll(cmd.Context(), c, *dry)
		if err != nil {
			return err
		}
		return writePruned(p, out, done, time.Now())
	}
	return cmd
}

// pruneAll asks until nothing is left that is too old, and adds up the answers.
func pruneAll(ctx context.Context, c *client.Client, dry bool) (client.Pruned, error) {
	all, err := c.Prune(ctx, dry, false)
	for err == nil && all.More && !dry {
		var more client.Pruned
		if more, err = c.Prune(ctx, false, true); err == nil {
			all = plusPruned(all, more)
		}
	}
	return all, err
}

func plusPruned(a, b client.Pruned) client.Pruned {
	at := map[[3]string]int{}
	for i, item := range a.Items {
		at[[3]string{item.Kind, item.LaneKind, item.Lane}] = i
	}
	for _, item := range b.Items {
		i, known := at[[3]string{item.Kind, item.LaneKind, item.Lane}]
		if !known {
			a.Items = append(a.Items, item)
			continue
		}
		a.Items[i].Rows, a.Items[i].Bytes = a.Items[i].Rows+item.Rows, a.Items[i].Bytes+item.Bytes
		if item.Oldest.Before(a.Items[i].Oldest.Time) {
			a.Items[i].Oldest = item.Oldest
		}
	}
	a.Rows, a.Bytes, a.More = a.Rows+b.Rows, a.Bytes+b.Bytes, b.More
	return a
}

func writePruned(p *Process, out *outputFlag, done client.Pruned, now time.Time) error {
	if out.machine() {
		raw, err := json.Marshal(done)
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		return writeMachine(p.Stdout, out.format, raw)
	}
	verb := "removed"
	if done.DryRun {
		verb = "would be removed"
	}
	if len(done.Items) > 0 {
		var rows [][]string
		for _, i := range done.Items {
			rows = append(rows, []string{i.Kind, orDash(i.LaneKind), orDash(i.Lane), strconv.FormatInt(i.Rows, 10), roughSize(i.Bytes), relative(i.Oldest.Time, now)})
		}
		columns := []column{{title: "what"}, {title: "kind"}, {title: "lane", flex: true, least: 16}, {title: "rows"}, {title: "size"}, {title: "oldest"}}
		if err := newSheet(p, columns).write(p.Stdout, rows, true); err != nil {
			return err
		}
	}
	more := ""
	if done.More {
		more = ", and more"
	}
	_, err := fmt.Fprintf(p.Stdout, "%s of about %s %s%s\n", plural(int(done.Rows), "row"), roughSize(done.Bytes), verb, more)
	return err
}
