package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newRetryCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry KIND NAME [INSTANT] | retry jobs", Short: "Retry failed jobs, or a slot of a schedule",
		Long: "Enqueues a failed job again, with a full set of attempts; or runs a slot of a schedule again\n" +
			"that failed, was skipped, or of which it is unknown whether it ran. A slot runs what the\n" +
			"schedule runs now. One that succeeded is not run again.\n\n" +
			"pawl retry jobs retries all failed jobs that its flags pick, the oldest first.",
		Example: "  pawl get jobs --state failed\n" +
			"  pawl retry job 42\n" +
			"  pawl retry jobs --task send-email --error 'connection refused'\n" +
			"  pawl retry slot nightly-backup 2026-12-24T02:00:00Z",
		GroupID: groupChange, Args: takes(1, 3),
	}
	flags := addSettingFlags(cmd, forClient)
	many := addJobFilterFlags(cmd)
	cmd.ValidArgsFunction = completeKind(p, flags, func(k kind) bool { return k.plural == jobKind().plural || k.plural == slotKind().plural })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		if k.plural == jobKind().plural && len(args) == 1 {
			return many.change(cmd, p, flags, (*client.Client).RetryJobs, "will run again", "would run again")
		}
		if err := cmp.Or(takes(2, 3)(cmd, args), many.onlyForJobs(cmd)); err != nil {
			return err
		}
		if k.plural == slotKind().plural {
			return changeSlot(cmd, p, flags, "retry", args[1:])
		}
		if k.plural != jobKind().plural || len(args) != 2 {
			return usageError("pawl retry job ID runs a failed job again, pawl retry slot SCHEDULE INSTANT a slot.", "%s cannot be retried", k.plural)
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
