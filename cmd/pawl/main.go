// Command pawl is the one program of Pawl: server, command line and demo.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawlrun/pawl/internal/cli"
	"github.com/pawlrun/pawl/internal/script"
)

func main() {
	script.WorkerMain() // scripts run in processes of this same program
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end. From then on signals have
	// their usual effect again, so a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, cli.ThisProcess()))
}
