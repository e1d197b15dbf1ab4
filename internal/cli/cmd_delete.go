package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newDeleteCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete KIND NAME", Short: "Remove one thing",
		Long:    "Removes one thing. A job that waits will not run, and a token is revoked.",
		Example: "  pawl delete job 42",
		GroupID: groupChange, Args: takes(2, 2), ValidArgsFunction: completeKind,
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		return remove(cmd, p, flags, k, args[1])
	}
	return cmd
}

// remove deletes a thing and says so.
func remove(cmd *cobra.Command, p *Process, flags *settingFlags, k kind, name string) error {
	path, err := k.pathOf(name)
	if err != nil {
		return err
	}
	c, err := flags.connect(p)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Delete(cmd.Context(), path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s %s %s\n", k.singular, name, k.removed)
	return err
}
