package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/script"
)

func newTypesCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "types",
		Short: "Print pawl.d.ts, the types of scripts",
		Long: "Prints the types of the module \"pawl\". An editor that finds them next to a workflow\n" +
			"completes ctx and marks type errors. Pawl itself does not check types.",
		Example: "  pawl types > pawl.d.ts\n" +
			"  pawl types --out pawl.d.ts",
		GroupID: groupTools, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := cmd.Flags().String("out", "", "write to `FILE`, overwriting it")
	cmd.RunE = func(*cobra.Command, []string) error {
		if *out == "" {
			_, err := io.WriteString(p.Stdout, script.Types())
			return err
		}
		if err := os.WriteFile(p.path(*out), []byte(script.Types()), 0o644); err != nil {
			return fmt.Errorf("write types: %w", err)
		}
		p.say("wrote %s", *out)
		return nil
	}
	return cmd
}
