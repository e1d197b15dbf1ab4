package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newRetryCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry KIND NAME", Short: "Retry a failed job",
		Long: "Enqueues a failed job again, with a full set of attempts.",
		Example: "  pawl get jobs --state failed\n" +
			"  pawl retry job 42",
		GroupID: groupChange, Args: takes(2, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, func(k kind) bool { return k.plural == jobKind().plural })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		if k.plural != jobKind().plural {
			return usageError("pawl retry job ID runs a failed job again.", "%s cannot be retried", k.plural)
		}
		if _, err := k.pathOf(args[1]); err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		path, id, err := k.located(cmd.Context(), c, args[1])
		if err != nil {
			return err
		}
		if _, err := c.Post(cmd.Context(), path+"/retry", nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "job %s will run again\n", id)
		return err
	}
	return cmd
}
