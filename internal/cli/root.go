package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawlrun/pawl"
)

// The groups in which help lists the commands.
const (
	groupStart  = "start"
	groupLook   = "look"
	groupChange = "change"
	groupTools  = "tools"
)

// newRoot builds the tree of commands for one process.
func newRoot(p *Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Durable schedules, workflows and jobs in one program",
		Long: "Pawl runs work later, on time, and exactly as often as promised:\n" +
			"one program with a SQLite file, or many nodes on one PostgreSQL.",
		Example: "  pawl demo\n" +
			"  pawl new workflow greetings\n" +
			"  pawl serve .",
		Version:           buildVersion().Version,
		Args:              cobra.ArbitraryArgs,
		RunE:              unknownCommand,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetVersionTemplate("pawl {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, p.Args, err) })
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start:"},
		&cobra.Group{ID: groupLook, Title: "Inspect:"},
		&cobra.Group{ID: groupChange, Title: "Manage:"},
		&cobra.Group{ID: groupTools, Title: "Tools:"},
	)
	root.AddCommand(
		newDemoCommand(p), newServeCommand(p), newWorkCommand(p), newNewCommand(p),
		newGetCommand(p), newDescribeCommand(p), newWhyCommand(p), newStatusCommand(p), newNextCommand(p),
		newApplyCommand(p), newDeclareCommand(p), newEnqueueCommand(p), newRunCommand(p), newPauseCommand(p), newResumeCommand(p), newHaltCommand(p), newUnhaltCommand(p), newCancelCommand(p),
		newApproveCommand(p), newRejectCommand(p), newResolveCommand(p), newConnectionsCommand(p),
		newSkipCommand(p), newPublishCommand(p), newMCPCommand(p), newResetCommand(p), newBackfillCommand(p), newDeleteCommand(p), newRetryCommand(p), newRedeliverCommand(p), newGrantCommand(p), newAccountCommand(p), newTokenCommand(p),
		newValidateCommand(p), newTestCommand(p), newReplayCommand(p), newTypesCommand(p), newCronCommand(p), newImportCommand(p), newBackupCommand(p), newPruneCommand(p), newPromoteCommand(p), newMigrateCommand(p), newVersionCommand(p), newCompletionCommand(p),
	)
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpCommandGroupID(groupTools)
	return root
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show help for a command", Example: "  pawl help\n  pawl help token create", GroupID: groupTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(found, rest)
			}
			return found.Help()
		},
	}
}

// unknownCommand is what a command does that only groups others: it shows its
// help, or refuses a word that is none of them.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := pawl.Suggest(args[0], names, "")
	if hint == "" {
		hint = fmt.Sprintf("%s --help lists the commands.", cmd.CommandPath())
	}
	return usageError(hint, "unknown command %q for %s", args[0], cmd.CommandPath())
}

// flagError explains a flag that the command does not know or cannot read.
func flagError(cmd *cobra.Command, args []string, err error) error {
	if _, rest, _ := cmd.Root().Find(args); cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return unknownCommand(cmd, rest[:1]) // the flag belongs to a command that does not exist
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usageError("Usage: "+cmd.UseLine(), "%s", err)
	}
	if unknown.GetSpecifiedShortnames() != "" {
		return usageError("Usage: "+cmd.UseLine(), "unknown flag -%s", unknown.GetSpecifiedName())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	written := "--" + unknown.GetSpecifiedName()
	hint := pawl.Suggest(written, names, "")
	if hint == "" {
		hint = fmt.Sprintf("%s --help lists the flags.", cmd.CommandPath())
	}
	return usageError(hint, "unknown flag %s", written)
}

// takes checks the number of arguments; most below zero is any number.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError("Usage: "+cmd.UseLine(), "%s needs more arguments", cmd.CommandPath())
		case most >= 0 && len(args) > most:
			return usageError("Usage: "+cmd.UseLine(), "%s does not take %q", cmd.CommandPath(), args[most])
		}
		return nil
	}
}
