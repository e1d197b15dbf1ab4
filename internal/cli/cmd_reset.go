package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newResetCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset source NAME", Short: "Reset the failures and position of a source",
		Long: "Clears a source's failures and the position at which its last fetch stopped, so that it can\n" +
			"be fetched at once, from the first page. With --all, its incremental cursor is cleared too,\n" +
			"and everything is fetched again. Rows are kept.",
		Example: "  pawl reset source prices\n" +
			"  pawl reset source prices --all",
		GroupID: groupChange, Args: takes(2, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	isSource := func(k kind) bool { return k.plural == sourceKind().plural }
	cmd.ValidArgsFunction = completeKind(p, flags, isSource)
	all := cmd.Flags().Bool("all", false, "clear the incremental cursor too")
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
