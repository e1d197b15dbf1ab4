package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
)

func newHaltCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "halt", Short: "Stop all starts on all nodes",
		Long: "Halts everything: no workflow, source, schedule or job starts on any node until pawl unhalt.\n" +
			"What runs continues to its end. Slots that come due wait, and count as missed afterwards.\n" +
			"Halting what is halted changes nothing but the note. It needs a token with halt:admin.",
		Example: "  pawl halt --note \"the payment provider is down\"\n" +
			"  pawl halt\n" +
			"  pawl unhalt",
		GroupID: groupChange, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	note := cmd.Flags().String("note", "", "why, for people: `TEXT` of one line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		h, err := c.Halt(cmd.Context(), *note)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "everything is halted since %s by %s\n", pawl.FormatTime(h.Since.Time), h.By)
		return err
	}
	return cmd
}

func newUnhaltCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "unhalt", Short: "Let everything start again",
		Long: "Lifts the halt of pawl halt. Workflows, sources and jobs that are due start at once; slots of\n" +
			"schedules that came due meanwhile were missed, and become what their missed policy says.\n" +
			"If nothing is halted, nothing changes. It needs a token with halt:admin.",
		Example: "  pawl unhalt",
		GroupID: groupChange, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		h, err := c.Halted(cmd.Context())
		if err == nil {
			err = c.Unhalt(cmd.Context())
		}
		if err != nil {
			return err
		}
		said := "nothing was halted"
		if h.Halted {
			said = "the halt is lifted after " + time.Since(h.Since.Time).Round(time.Second).String()
		}
		_, err = fmt.Fprintln(p.Stdout, said)
		return err
	}
	return cmd
}
