package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/cli/client"
)

func newGetCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "List things, or show one",
		Long:  "Lists things of a kind, or shows one.\n\nKinds: " + strings.Join(kindNames(), ", "),
		Example: "  pawl get jobs\n" +
			"  pawl get jobs --state failed -o wide\n" +
			"  pawl get job 42 -o yaml\n" +
			"  pawl get jobs -w",
		GroupID: groupLook, Args: takes(1, 2), ValidArgsFunction: completeKind,
	}
	g := &getter{p: p, flags: addSettingFlags(cmd, forClient), out: addOutputFlag(cmd, formatTable, formatWide, formatJSON, formatYAML)}
	watch := cmd.Flags().BoolP("watch", "w", false, "go on and show what changes, until interrupted")
	cmd.Flags().IntVar(&g.limit, "limit", 100, "show at most `N`; 0 is all")
	g.filters = addFilterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := g.prepare(args); err != nil {
			return err
		}
		defer g.client.Close()
		if *watch {
			return g.watch(cmd.Context())
		}
		return g.show(cmd.Context())
	}
	return cmd
}

// addFilterFlags gives get a flag for each parameter that lists can be
// narrowed by.
func addFilterFlags(cmd *cobra.Command) map[string]*string {
	filters := map[string]*string{}
	for _, k := range kinds() {
		for _, name := range k.filters {
			if filters[name] == nil {
				filters[name] = cmd.Flags().String(name, "", "show those with this `"+strings.ToUpper(name)+"` only")
			}
		}
	}
	return filters
}

// getter is one call of get.
type getter struct {
	p       *Process
	flags   *settingFlags
	out     *outputFlag
	limit   int
	filters map[string]*string

	client *client.Client
	kind   kind
	name   string // empty is all
	query  url.Values
}

func (g *getter) prepare(args []string) (err error) {
	if g.kind, err = findKind(args[0]); err != nil {
		return err
	}
	if len(args) > 1 {
		g.name = args[1]
	}
	if g.limit < 0 {
		return usageError("", "--limit: %d is below zero", g.limit)
	}
	g.query = url.Values{}
	for name, value := range g.filters {
		if *value == "" {
			continue
		}
		if !slices.Contains(g.kind.filters, name) || g.name != "" {
			return usageError("", "--%s does not apply to %s", name, strings.Join(args, " "))
		}
		g.query.Set(name, *value)
	}
	g.client, err = g.flags.connect(g.p)
	return err
}

func (g *getter) show(ctx context.Context) error {
	if g.name != "" {
		raw, err := getOne(ctx, g.client, g.kind, g.name)
		if err != nil {
			return err
		}
		if g.out.machine() {
			return writeMachine(g.p.Stdout, g.out.format, raw)
		}
		return g.table([]json.RawMessage{raw})
	}
	items, more, err := g.client.List(ctx, g.kind.path, g.query, g.limit)
	if err != nil {
		return err
	}
	if more {
		defer g.p.say("There are more; --limit 0 shows all.")
	}
	if g.out.machine() {
		return writeMachine(g.p.Stdout, g.out.format, listOf(items))
	}
	if len(items) == 0 {
		g.p.say("No %s.", g.kind.plural)
		return nil
	}
	return g.table(items)
}

func (g *getter) table(items []json.RawMessage) error {
	now := time.Now()
	rows := make([][]string, len(items))
	for i, raw := range items {
		cells, err := g.kind.cells(raw, now, g.out.format)
		if err != nil {
			return err
		}
		rows[i] = cells
	}
	return newSheet(g.p, g.kind.shown(g.out.format)).write(g.p.Stdout, rows, true)
}

// getOne reads one thing by its name.
func getOne(ctx context.Context, c *client.Client, k kind, name string) (json.RawMessage, error) {
	path, err := k.pathOf(name)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, path)
}
