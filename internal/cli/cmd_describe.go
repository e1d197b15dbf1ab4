package cli

import (
	"cmp"
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newDescribeCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe KIND NAME", Short: "Show details of a resource",
		Long: "Shows details of a resource: its state, its history, and what to do next. A run can be named\n" +
			"by the last characters of its ID.",
		Example: "  pawl describe workflow mail-to-sheet\n" +
			"  pawl describe source prices\n" +
			"  pawl describe schedule morning-poet\n" +
			"  pawl describe run 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e\n" +
			"  pawl describe run 3f1a2b4c5d6e\n" +
			"  pawl describe job 380466501013753856",
		GroupID: groupLook, Args: takes(2, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, func(k kind) bool { return k.describe != nil })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		if k.describe == nil {
			return usageError(cmp.Or(k.instead, "Show it with: pawl get "+k.plural+" "+args[1]+" -o yaml"), "%s cannot be described", k.plural)
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := getOne(cmd.Context(), c, k, args[1])
		if err != nil {
			return err
		}
		return describeThing(cmd, p, c, k, raw)
	}
	return cmd
}

// describeThing tells everything about a thing.
func describeThing(cmd *cobra.Command, p *Process, c *client.Client, k kind, raw json.RawMessage) error {
	now := time.Now()
	words, err := k.describe(raw, now)
	if err != nil {
		return err
	}
	if k.more != nil {
		more, err := k.more(cmd.Context(), c, raw, now)
		if err != nil {
			return err
		}
		words += more
	}
	_, err = io.WriteString(p.Stdout, words)
	return err
}

// explainThing is why for what is no lane: a run or a job tells how it stands by
// itself.
func explainThing(cmd *cobra.Command, p *Process, c *client.Client, out *outputFlag, k kind, name string) error {
	raw, err := getOne(cmd.Context(), c, k, name)
	if err != nil {
		return err
	}
	if out.machine() {
		return writeMachine(p.Stdout, out.format, raw)
	}
	return describeThing(cmd, p, c, k, raw)
}
