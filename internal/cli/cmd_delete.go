package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
)

func newDeleteCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete KIND NAME", Short: "Remove one thing",
		Long: "Removes one thing. A job that waits will not run, and a token is revoked. A workflow is\n" +
			"removed after a question, or with --yes; what it did can still be read.",
		Example: "  pawl delete job 42\n" +
			"  pawl delete workflow mail-to-sheet --yes",
		GroupID: groupChange, Args: takes(2, 2), ValidArgsFunction: completeKind(func(k kind) bool { return k.removed != "" }),
	}
	flags := addSettingFlags(cmd, forClient)
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		if k.removed == "" {
			return usageError("", "%s cannot be deleted", k.plural)
		}
		if k.loses != "" && !*yes {
			if err := confirm(cmd.Context(), p, fmt.Sprintf("Delete %s %s? %s", k.singular, args[1], k.loses)); err != nil {
				return err
			}
		}
		return remove(cmd, p, flags, k, args[1])
	}
	return cmd
}

// confirm asks whether to go on, and returns an error unless the answer is
// yes. Where nobody can answer it does not ask.
func confirm(ctx context.Context, p *Process, question string) error {
	if !p.asks() {
		return usageError("Add --yes to do it without a question.", "this needs a yes, and there is no terminal to ask on")
	}
	if _, err := fmt.Fprintf(p.Stderr, "%s [y/N] ", oneLine(question)); err != nil {
		return err
	}
	answered := make(chan string, 1)
	go func() { // a terminal cannot be told to stop waiting
		line, _ := bufio.NewReader(p.Stdin).ReadString('\n') // the end of input is no yes
		answered <- line
	}()
	var answer string
	select {
	case answer = <-answered:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &pawl.Error{Code: pawl.CodeConflict, Msg: "not done, because the answer was not yes"}
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
