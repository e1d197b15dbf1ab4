package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/demo"
)

func newDemoCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch Pawl at work: a real server with live examples, no network needed",
		Long: "Starts a real server on a SQLite file in a temporary folder, with a small upstream of\n" +
			"its own on loopback, gives it work and tells what happens. Every promise it shows is\n" +
			"checked; the exit code is 1 if one was broken.\n\n" +
			"On a terminal it goes on until Ctrl-C, elsewhere it ends after one round.",
		GroupID: groupStart, Args: takes(0, 0),
	}
	keep := cmd.Flags().String("keep", "", "keep the data in `DIR` instead of a temporary folder")
	addr := cmd.Flags().String("addr", "127.0.0.1:0", "listen on `HOST:PORT`; port 0 is any free one")
	once := cmd.Flags().Bool("once", !p.StdoutTerminal, "end after one round (default on anything but a terminal)")
	seconds := cmd.Flags().Int("seconds", 0, "end after `N` seconds")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *seconds < 0 {
			return usageError("", "--seconds: %d is below zero", *seconds)
		}
		return demo.Run(cmd.Context(), demo.Config{
			Out: p.Stdout, Addr: *addr, Dir: p.path(*keep), Colour: p.paint(p.StdoutTerminal),
			Once: *once && *seconds == 0, Length: time.Duration(*seconds) * time.Second,
		})
	}
	return cmd
}
