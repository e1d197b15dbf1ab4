package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newGetCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "List resources, or show one",
		Long: "Lists resources of a kind, or shows one.\n\n" +
			"Inputs, outputs, events, partitions and rules belong to a workflow, rows and rejects to a source, slots\n" +
			"and backfills to a schedule, deliveries to a hook: NAME is the name of their owner, or the ID\n" +
			"of a single input or backfill. Versions belong to a workflow, or to a source written as\n" +
			"source/NAME. Without a NAME, rejects, slots, backfills, rules and deliveries of all owners\n" +
			"are listed.\n\n" +
			"Rules are calls that a workflow can make without approval, because a user approved them\n" +
			"for good; questions are what graphs ask. Storage is how large the database is, by table and\n" +
			"by lane, and what it grows by." +
			"\n\nKinds: " + strings.Join(kindNames(nil), ", ") + ", " + storageWord,
		Example: "  pawl get workflows -w\n" +
			"  pawl get workflow mail-to-sheet -o yaml\n" +
			"  pawl get runs --workflow mail-to-sheet --status failed:logic\n" +
			"  pawl get inputs mail-to-sheet\n" +
			"  pawl get approvals -w\n" +
			"  pawl get rules mail-to-sheet\n" +
			"  pawl get rows prices\n" +
			"  pawl get versions source/prices\n" +
			"  pawl get slots morning-poet --status error\n" +
			"  pawl get receipts --schedule morning-poet\n" +
			"  pawl get deliveries github --outcome refused\n" +
			"  pawl get lanes -l team=data\n" +
			"  pawl get jobs --state failed -o wide\n" +
			"  pawl get storage",
		GroupID: groupLook, Args: takes(1, 2),
	}
	g := &getter{p: p, flags: addSettingFlags(cmd, forClient), out: addOutputFlag(cmd, formatTable, formatWide, formatJSON, formatYAML), owners: map[string]*string{}}
	cmd.ValidArgsFunction = completeKind(p, g.flags, nil)
	watch := cmd.Flags().BoolP("watch", "w", false, "keep running and show changes until interrupted")
	cmd.Flags().IntVar(&g.limit, "limit", 100, "show at most `N`; 0 shows all")
	for _, k := range ownerKinds() {
		g.owners[k.singular] = cmd.Flags().String(k.singular, "", "show only those of the "+k.singular+" `NAME`")
	}
	cmd.Flags().BoolVar(&g.all, "all", false, "show those of all users, for admins (schedules, grants, accounts, receipts)")
	cmd.Flags().StringArrayVarP(&g.labels, "selector", "l", nil, "show only those with the label `NAME=VALUE` (repeatable; lanes, workflows, sources, schedules)")
	g.filters = addFilterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if strings.EqualFold(args[0], storageWord) {
			return g.showStorage(cmd.Context(), args, *watch)
		}
		if err := g.prepare(cmd.Context(), args); err != nil {
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
		for _, name := range append(slices.Clone(k.filters), k.sifts...) {
			if filters[name] == nil {
				filters[name] = cmd.Flags().String(name, "", "show only those with this `"+strings.ToUpper(name)+"`")
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
	owners  map[string]*string // --workflow, --source, --schedule; by kind
	all     bool
	labels  []string

	client   *client.Client
	kind     kind
	path     string // of the list
	name     string // empty is all
	owner    string // whose list it is; empty is everybody's
	query    url.Values
	sifted   map[string]string // by field
	selector selector
}

// prepare reads the command line, connects, and finds what is asked for.
func (g *getter) prepare(ctx context.Context, args []string) (err error) {
	if g.kind, err = findKind(args[0]); err != nil {
		return err
	}
	if len(args) > 1 {
		g.name = args[1]
	}
	if g.name != "" && g.kind.instead != "" {
		return usageError(g.kind.instead, "%s cannot be shown one by one", g.kind.plural)
	}
	if g.limit < 0 {
		return usageError("", "--limit: %d is below zero", g.limit)
	}
	g.path, g.query, g.sifted = g.kind.path, url.Values{}, map[string]string{}
	if err := g.narrow(args); err != nil {
		return err
	}
	for name, value := range g.filters {
		if *value == "" {
			continue
		}
		if slices.Contains(g.kind.sifts, name) && g.name == "" {
			g.sifted[name] = *value
			continue
		}
		if !slices.Contains(g.kind.filters, name) || g.name != "" || g.query.Has(name) {
			return usageError("", "--%s does not apply to %s", name, strings.Join(args, " "))
		}
		g.query.Set(name, *value)
	}
	if g.client, err = g.flags.connect(g.p); err != nil {
		return err
	}
	if err = g.lookUp(ctx); err != nil {
		g.client.Close()
	}
	return err
}

// list reads what is to be shown, and whether there is more.
func (g *getter) list(ctx context.Context) (items []json.RawMessage, more bool, err error) {
	if g.kind.everywhere {
		return g.listOfOwners(ctx)
	}
	if len(g.selector)+len(g.sifted) == 0 && !(g.kind.listed && g.name != "") {
		return g.client.List(ctx, g.path, g.query, g.limit)
	}
	all, _, err := g.client.List(ctx, g.path, g.query, 0)
	if err != nil {
		return nil, false, err
	}
	for _, raw := range all {
		if !g.wanted(raw) {
			continue
		}
		if g.limit > 0 && len(items) == g.limit {
			return items, true, nil
		}
		items = append(items, raw)
	}
	if g.name != "" && len(items) == 0 {
		err = &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no %s %q", g.kind.singular, g.name)}
	}
	return items, false, err
}

// wanted reports whether a thing has the name and the labels that were asked
// for, where the server does not choose.
func (g *getter) wanted(raw json.RawMessage) bool {
	var thing struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	}
	if json.Unmarshal(raw, &thing) != nil {
		return false
	}
	return g.sift(raw) && g.selector.matches(thing.Labels) && (!g.kind.listed || g.name == "" || g.name == thing.Name)
}

// sift reports whether a thing has the values that were asked for. Nobody has to
// remember whether a word is written large, or with a blank or a dash.
func (g *getter) sift(raw json.RawMessage) bool {
	if len(g.sifted) == 0 {
		return true
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	plain := strings.NewReplacer("-", " ", "_", " ").Replace
	for name, wanted := range g.sifted {
		if value, _ := fields[name].(string); !strings.EqualFold(plain(value), plain(wanted)) {
			return false
		}
	}
	return true
}

func (g *getter) show(ctx context.Context) error {
	if g.name != "" && !g.kind.listed {
		raw, err := getOne(ctx, g.client, g.kind, g.name)
		if err != nil {
			return err
		}
		if g.out.machine() {
			return writeMachine(g.p.Stdout, g.out.format, raw)
		}
		return g.table(ctx, []json.RawMessage{raw})
	}
	items, more, err := g.list(ctx)
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
	return g.table(ctx, items)
}

func (g *getter) table(ctx context.Context, items []json.RawMessage) error {
	if g.kind.row == nil {
		return writeFields(g.p, items, g.definedFields(ctx), g.out.format, true)
	}
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
	path, err := k.locateOne(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, path)
}
