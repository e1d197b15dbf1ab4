package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newResetCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset source NAME", Short: "Let a source begin anew",
		Long: "Forgets the failures of a source and where its last fetch was cut off, so that it may be\n" +
			"fetched at once and from the first page. With --all it forgets also how far its incremental\n" +
			"cursor has come: everything is fetched again. Rows stay as they are.",
		Example: "  pawl reset source prices\n" +
			"  pawl reset source prices --all",
		GroupID: groupChange, Args: takes(2, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	isSource := func(k kind) bool { return k.plural == sourceKind().plural }
	cmd.ValidArgsFunction = completeKind(p, flags, isSource)
	all := cmd.Flags().Bool("all", false, "forget also how far the incremental cursor has come")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		if !isSource(k) {
			return usageError("Usage: "+cmd.UseLine(), "%s cannot be reset", k.plural)
		}
		path, err := k.pathOf(args[1])
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Post(cmd.Context(), path+"/reset", map[string]bool{"all": *all}); err != nil {
			return err
		}
		said := "reset"
		if *all {
			said += "; everything is fetched again"
		}
		_, err = fmt.Fprintf(p.Stdout, "source %s %s\n", args[1], said)
		return err
	}
	return cmd
}
