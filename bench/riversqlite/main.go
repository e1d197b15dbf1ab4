// Command riversqlite is River on an SQLite file, as a process that bench
// measures. It has a module of its own because the newest release of River's
// SQLite driver that can be downloaded needs an older River than its
// PostgreSQL driver.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/pawlrun/pawl/bench/subject"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := subject.Serve(ctx, &queue{}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
