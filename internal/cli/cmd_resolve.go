package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl"
)

// outcomes are what people can say about a call of which nobody else knows
// what became of it.
func outcomes() []string { return []string{"happened", "did-not-happen", "skip", "try-again"} }

func newResolveCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "resolve RUN", Short: "Resolve a call whose outcome is unknown",
		Long: "Resolves a call whose outcome is unknown. Check the other system first:\n\n" +
			"  happened        the run continues; --result is what the call returned, for the script\n" +
			"  did-not-happen  the work starts again, and the call is made again\n" +
			"  skip            the run continues without the call, and the events it reserved are skipped\n" +
			"  try-again       the other system is asked once more",
		Example: "  pawl resolve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e --outcome happened --result '{\"row\": 7}'\n" +
			"  pawl resolve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e --outcome did-not-happen",
		GroupID: groupChange, Args: takes(1, 2), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	outcome := cmd.Flags().String("outcome", "", "outcome of the call: `"+strings.Join(outcomes(), "|")+"` (required)")
	result := cmd.Flags().String("result", "", "with happened, the result of the call: `JSON`, @FILE, or - for stdin")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := onlyRun(cmd, args)
		if err != nil {
			return err
		}
		if _, err := runKind().pathOf(id); err != nil {
			return err
		}
		body, err := resolution(p, *outcome, *result)
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		path, id, err := runKind().located(cmd.Context(), c, id)
		if err != nil {
			return err
		}
		if _, err := c.Post(cmd.Context(), path+"/resolve", body); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "run %s resolved: %s\n", id, resolvedWords(fmt.Sprint(body["outcome"])))
		return err
	}
	return cmd
}

// resolution makes the request from the flags.
func resolution(p *Process, outcome, result string) (map[string]any, error) {
	word := strings.ReplaceAll(strings.ToLower(outcome), "_", "-")
	all := "Write --outcome " + strings.Join(outcomes(), "|") + "."
	switch {
	case outcome == "":
		return nil, usageError(all, "the command needs to know what happened")
	case !slices.Contains(outcomes(), word):
		if guess := pawl.Suggest(word, outcomes(), ""); guess != "" {
			all = guess + " " + all
		}
		return nil, usageError(all, "--outcome: %q is not an outcome", outcome)
	}
	body := map[string]any{"outcome": word}
	if result == "" {
		return body, nil
	}
	if word != "happened" {
		return nil, usageError("Leave it out.", "--result is for --outcome happened only")
	}
	content, err := readJSON(p, "--result", result)
	if err != nil {
		return nil, err
	}
	body["result"] = content
	return body, nil
}

// resolvedWords say what follows.
func resolvedWords(outcome string) string {
	switch outcome {
	case "happened":
		return "it happened, and the run continues"
	case "did-not-happen":
		return "it did not happen, and the work starts again"
	case "skip":
		return "the run continues without it, and its events are skipped"
	}
	return "the other side is asked once more"
}
