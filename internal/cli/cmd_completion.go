package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl"
)

func newCompletionCommand(p *Process) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a shell completion script: " + strings.Join(shells, ", "),
		Example: "  source <(pawl completion bash)                                 # for this shell\n" +
			"  pawl completion fish > ~/.config/fish/completions/pawl.fish    # permanently",
		GroupID: groupTools, Args: takes(1, 1), ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(p.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(p.Stdout)
			case "fish":
				return root.GenFishCompletion(p.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(p.Stdout)
			}
			hint := pawl.Suggest(args[0], shells, "")
			if hint == "" {
				hint = "Shells: " + strings.Join(shells, ", ") + "."
			}
			return usageError(hint, "no completion for %q", args[0])
		},
	}
}
