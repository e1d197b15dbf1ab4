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
		Short: "Run a demo server with live examples, no network needed",
		Long: "Starts a real server on a SQLite file in a temporary folder, together with a few simulated\n" +
			"services on loopback (a market, an order desk, a poet), gives it work and narrates what\n" +
			"happens. Every guarantee shown is verified; the exit code is 1 if one does not hold.\n\n" +
			"On a terminal, the demo then keeps running until Ctrl-C, so that you can open it in a\n" +
			"browser and approve what is waiting. Otherwise it exits when everything has been shown; use\n" +
			"--once=false to keep it running.",
		Example: "  pawl demo\n" +
			"  pawl demo --addr 127.0.0.1:8080 --keep demo-data\n" +
			"  pawl demo --once",
		GroupID: groupStart, Args: takes(0, 0),
	}
	keep := cmd.Flags().String("keep", "", "keep the data in `DIR` instead of a temporary folder")
	addr := cmd.Flags().String("addr", "127.0.0.1:0", "listen on `HOST:PORT`; port 0 picks a free port")
	once := cmd.Flags().Bool("once", !p.StdoutTerminal, "exit when everything has been shown (default unless on a terminal)")
	seconds := cmd.Flags().Int("seconds", 0, "exit after `N` seconds")
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
