package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

func newConnectionsPinCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pin NAME [METHOD...]", Short: "Approve the current tools of an MCP server",
		Long: "An MCP server can change its tools at any time. Tools that differ from what was approved are\n" +
			"blocked.\n\n" +
			"Without a method, the command shows which tools are blocked and how they differ, and changes\n" +
			"nothing. With methods, or with --all, it approves those tools as they are now, without\n" +
			"asking. If a tool changes in the meantime, the command fails with exit code 4.",
		Example: "  pawl connections pin files\n" +
			"  pawl connections pin files read_file list_folder\n" +
			"  pawl connections pin files --all",
		Args: takes(1, -1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	all := cmd.Flags().Bool("all", false, "approve all blocked tools")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, methods := args[0], args[1:]
		if *all && len(methods) > 0 {
			return usageError("", "--all and methods cannot go together")
		}
		path, err := connectionKind().pathOf(name)
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		pin := &pinner{p: p, out: out, client: c, name: name, path: path + "/pins"}
		if err := pin.read(cmd); err != nil {
			return err
		}
		if *all {
			return pin.agree(cmd, pin.open())
		}
		if len(methods) > 0 {
			return pin.agree(cmd, methods)
		}
		return pin.show()
	}
	return cmd
}

// pinner is one call of connections pin.
type pinner struct {
	p      *Process
	out    *outputFlag
	client *client.Client
	name   string // of the connection
	path   string // of its pins

	raw  []json.RawMessage
	pins []client.Pin
}

func (n *pinner) read(cmd *cobra.Command) (err error) {
	if n.raw, _, err = n.client.List(cmd.Context(), n.path, nil, 0); err != nil {
		return err
	}
	n.pins = make([]client.Pin, len(n.raw))
	for i, raw := range n.raw {
		if err := json.Unmarshal(raw, &n.pins[i]); err != nil {
			return fmt.Errorf("read pin: %w", err)
		}
	}
	return nil
}

// open are the methods that can be agreed to here.
func (n *pinner) open() (methods []string) {
	for _, p := range n.pins {
		if p.State != client.PinHolds && !p.Fixed {
			methods = append(methods, p.Method)
		}
	}
	return methods
}

// show tells what is blocked, and how it differs from what was agreed to.
func (n *pinner) show() error {
	if n.out.machine() {
		return writeMachine(n.p.Stdout, n.out.format, listOf(n.raw))
	}
	var b strings.Builder
	blocked, fixed := 0, 0
	for _, p := range n.pins {
		if p.State == client.PinHolds {
			continue
		}
		blocked++
		if p.Fixed {
			fixed++
		}
		writePin(&b, p)
	}
	if blocked == 0 {
		fmt.Fprintf(&b, "Nothing is blocked: %s as agreed to.\n", areTools(len(n.pins)))
	} else if blocked > fixed {
		fmt.Fprintf(&b, "Agree with: pawl connections pin %s METHOD...\nor to all:  pawl connections pin %s --all\n", n.name, n.name)
	}
	_, err := fmt.Fprint(n.p.Stdout, b.String())
	return err
}

func areTools(n int) string {
	if n == 1 {
		return "the 1 tool is"
	}
	return fmt.Sprintf("all %d tools are", n)
}

// writePin tells how a method differs from what was agreed to. All of it is the
// other side's words, so what cannot be seen is made visible.
func writePin(b *strings.Builder, p client.Pin) {
	what := map[string]string{
		client.PinChanged: "is not what was agreed to", client.PinMissing: "is new", client.PinGone: "is gone",
	}[p.State]
	class := "reads"
	if p.Class == "mutation" {
		class = "has side effects"
	}
	fmt.Fprintf(b, "%s %s; it %s\n", oneLine(visible.Text(p.Method)), what, class)
	if p.Fixed {
		fmt.Fprintf(b, "  Its pin is in the definition; agree by writing there: pin: %s\n", oneLine(string(p.Now)))
	}
	diff := unifiedDiff("agreed", "now", string(p.Was), string(p.Is))
	if p.State == client.PinChanged && p.Was == "" { // its earlier version was not kept
		diff = string(p.Change)
	}
	for line := range strings.Lines(diff) {
		fmt.Fprintf(b, "  %s\n", oneLine(visible.Text(strings.TrimRight(line, "\n"))))
	}
	b.WriteByte('\n')
}

// agree pins methods as they were read, and says so.
func (n *pinner) agree(cmd *cobra.Command, methods []string) error {
	told := client.Pinned{}
	if len(methods) > 0 {
		seen := map[string]string{}
		for _, p := range n.pins {
			if slices.Contains(methods, p.Method) {
				seen[p.Method] = string(p.Now)
			}
		}
		raw, err := n.client.Post(cmd.Context(), n.path, map[string]any{"methods": methods, "seen": seen})
		if err != nil {
			return err
		}
		if n.out.machine() {
			return writeMachine(n.p.Stdout, n.out.format, raw)
		}
		if err := json.Unmarshal(raw, &told); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
	}
	for _, p := range n.pins {
		if p.Fixed && p.State != client.PinHolds {
			n.p.say("%s stays blocked: its pin is in the definition of the connection.", oneLine(visible.Text(p.Method)))
		}
	}
	if len(told.Pinned) == 0 {
		_, err := fmt.Fprintf(n.p.Stdout, "connection %s: nothing new to agree to\n", n.name)
		return err
	}
	_, err := fmt.Fprintf(n.p.Stdout, "connection %s: agreed to %s\n", n.name, oneLine(visible.Text(strings.Join(told.Pinned, ", "))))
	return err
}
