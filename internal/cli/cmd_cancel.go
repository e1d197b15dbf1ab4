package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newCancelCommand(p *Process) *cobra.Command {
	cmd, flags := oneCommand(p, &cobra.Command{
		Use: "cancel RUN | cancel jobs", Short: "Cancel a run, or many jobs",
		Long: "Cancels a run. A workflow's run cannot be cancelled once it has sent something, because the\n" +
			"effect cannot be undone; the command then fails with exit code 4. A source keeps the pages\n" +
			"that were already written. For a schedule's run, the executor is asked to stop.\n\n" +
			"pawl cancel jobs cancels all jobs that its flags pick and that wait, run or failed. A single job\n" +
			"is cancelled with pawl delete job.",
		Example: "  pawl cancel 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e\n" +
			"  pawl cancel jobs --lane customer-17 --dry-run\n" +
			"  pawl cancel jobs --task send-email --state failed --older-than 7d",
	}, runKind(), "cancel", always("cancelled"))
	one, many := cmd.RunE, addJobFilterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if k := jobKind(); len(args) == 1 && args[0] == k.plural {
			return many.change(cmd, p, flags, (*client.Client).CancelJobs, "cancelled", "would be cancelled")
		}
		if err := many.onlyForJobs(cmd); err != nil {
			return err
		}
		return one(cmd, args)
	}
	return cmd
}

func newSkipCommand(p *Process) *cobra.Command {
	cmd, flags := oneCommand(p, &cobra.Command{
		Use: "skip INPUT | skip slot SCHEDULE INSTANT", Short: "Skip an input, or a slot of a schedule",
		Long: "Skips an input: work that has not been done for it will not be done. A run that has already\n" +
			"sent something for it continues to its end.\n\n" +
			"Or skips a slot of a schedule: one that waits will not run. One that failed, or of which it\n" +
			"is unknown whether it ran, is left as it is, and the schedule no longer needs attention\n" +
			"because of it.",
		Example: "  pawl get inputs mail-to-sheet\n" +
			"  pawl skip in_9d5e96a3ee1dd54fdc920bef83db0a58\n" +
			"  pawl skip slot nightly-backup 2026-12-24T02:00:00Z",
	}, inputKind(), "skip", always("skipped"))
	one := cmd.RunE
	cmd.Args = takes(1, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if k := slotKind(); args[0] == k.singular || args[0] == k.plural {
			return changeSlot(cmd, p, flags, "skip", args[1:])
		}
		if len(args) > 2 {
			return usageError("Usage: pawl skip INPUT", "%s does not take %q", cmd.CommandPath(), args[2])
		}
		return one(cmd, args)
	}
	return cmd
}

// always says the same, whatever the answer.
func always(said string) func(json.RawMessage) string {
	return func(json.RawMessage) string { return said }
}

// newOneCommand completes a command that changes a thing of one kind by its
// id, and says what the answer means. The kind may be written before it, as
// other commands want it.
func newOneCommand(p *Process, cmd *cobra.Command, k kind, verb string, said func(answer json.RawMessage) string) *cobra.Command {
	cmd, _ = oneCommand(p, cmd, k, verb, said)
	return cmd
}

// oneCommand is newOneCommand with the flags of the command.
func oneCommand(p *Process, cmd *cobra.Command, k kind, verb string, said func(answer json.RawMessage) string) (*cobra.Command, *settingFlags) {
	cmd.GroupID, cmd.Args, cmd.ValidArgsFunction = groupChange, takes(1, 2), cobra.NoFileCompletions
	flags := addSettingFlags(cmd, forClient)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id := args[len(args)-1]
		if len(args) == 2 && args[0] != k.singular {
			return usageError("Usage: "+cmd.UseLine(), "%s does not take %q", cmd.CommandPath(), args[1])
		}
		if _, err := k.pathOf(id); err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		path, id, err := k.located(cmd.Context(), c, id)
		if err != nil {
			return err
		}
		answer, err := c.Post(cmd.Context(), path+"/"+verb, nil)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "%s %s %s\n", k.singular, id, said(answer))
		return err
	}
	return cmd, flags
}
