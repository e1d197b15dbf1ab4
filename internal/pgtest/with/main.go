//go:build unix

// Command with runs another command beside a private PostgreSQL:
//
//	go run ./internal/pgtest/with -- go test ./...
//
// The command finds the server's URL in PAWL_TEST_POSTGRES; where that is
// already set, no server is started. Without a command it prints the line that
// sets the variable, and keeps the server until Ctrl-C. With -fast the server
// does not wait for the disk, and the command's temporary files are in memory
// where there is enough. With -find it prints the folder of the PostgreSQL
// programs it would use, and fails where there are none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// killDelay is how long an interrupted command has to end by itself.
const killDelay = 10 * time.Second

func main() {
	fast := flag.Bool("fast", false, "do not wait for the disk: for tests, not for measurements")
	find := flag.Bool("find", false, "print the folder of the PostgreSQL programs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, *find, *fast, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(ctx context.Context, find, fast bool, command []string) (code int, err error) {
	switch {
	case find:
		return 0, printFolder(ctx)
	case os.Getenv(pgtest.EnvURL) != "" && len(command) == 0:
		return 2, fmt.Errorf("%s names a server already", pgtest.EnvURL)
	}
	env := os.Environ()
	if fast {
		dir := inMemory()
		if dir != "" {
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		}
		env = append(env, temporary(dir)...)
	}
	if os.Getenv(pgtest.EnvURL) != "" {
		return execute(ctx, command, env)
	}
	start := pgtest.NewCluster
	if fast {
		start = pgtest.NewFastCluster
	}
	cluster, err := start(ctx)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if len(command) == 0 {
		return keep(ctx, cluster.URL())
	}
	return execute(ctx, command, append(env, pgtest.EnvURL+"="+cluster.URL()))
}

// keep prints how to use the server, and waits.
func keep(ctx context.Context, url string) (int, error) {
	if _, err := fmt.Fprintf(os.Stdout, "export %s='%s'\n", pgtest.EnvURL, url); err != nil {
		return 1, err
	}
	fmt.Fprintln(os.Stderr, "PostgreSQL runs until Ctrl-C.")
	<-ctx.Done()
	return 0, nil
}

// temporary returns the variables that make dir the folder of temporary files.
// Test programs are large and are written once: they stay on the disk.
func temporary(dir string) []string {
	if dir == "" {
		return nil
	}
	env := []string{"TMPDIR=" + dir}
	if os.Getenv("GOTMPDIR") == "" {
		env = append(env, "GOTMPDIR="+os.TempDir())
	}
	return env
}

func printFolder(ctx context.Context) error {
	folder, err := pgtest.Find(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, folder)
	return err
}

// execute runs the command and returns its exit code. The command has a
// process group of its own, so that Ctrl-C or SIGTERM ends all of it, test
// programs included, before its server goes.
func execute(ctx context.Context, command, env []string) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	return 0, nil
}
