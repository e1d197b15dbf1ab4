package cli

import (
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/demo"
)

// programName is how this program is called: by its name if that is found, and
// else by its path, as after go run.
func programName() string {
	own, err := os.Executable()
	if err != nil {
		return "pawl"
	}
	if found, err := exec.LookPath("pawl"); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(own)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return "pawl"
		}
	}
	return own
}

func newDemoCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch Pawl at work: a real server with live examples, no network needed",
		Long: "Starts a real server on a SQLite file in a temporary folder, with a small world of its\n" +
			"own on loopback (a market, an order desk, a poet), gives it work and tells what happens.\n" +
			"Every promise it shows is checked; the exit code is 1 if one was broken.\n\n" +
			"On a terminal the world then goes on until Ctrl-C, for you to look at in a browser and to\n" +
			"approve what waits. Elsewhere it ends when all is shown; --once=false lets it go on.",
		GroupID: groupStart, Args: takes(0, 0),
	}
	keep := cmd.Flags().String("keep", "", "keep the data in `DIR` instead of a temporary folder")
	addr := cmd.Flags().String("addr", "127.0.0.1:0", "listen on `HOST:PORT`; port 0 is any free one")
	once := cmd.Flags().Bool("once", !p.StdoutTerminal, "end when every promise was shown (default on anything but a terminal)")
	seconds := cmd.Flags().Int("seconds", 0, "end after `N` seconds")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *seconds < 0 {
			return usageError("", "--seconds: %d is below zero", *seconds)
		}
		return demo.Run(cmd.Context(), demo.Config{
			Out: p.Stdout, Program: programName(), Addr: *addr, Dir: p.path(*keep), Colour: p.paint(p.StdoutTerminal),
			Once: *once && *seconds == 0, Length: time.Duration(*seconds) * time.Second,
		})
	}
	return cmd
}
