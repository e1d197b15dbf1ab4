package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Ports are taken below the range that systems hand out by themselves
// (32768 and up), so that nobody is given the port of a stopped cluster.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// startTries bounds the search for a port that is still free when PostgreSQL
// binds it.
const startTries = 5

// logShown is how many bytes of the server's log an error shows.
const logShown = 4096

// watchScript waits for the end of its input, then removes the cluster.
// $1 is pg_ctl, $2 the cluster's folder.
const watchScript = `while read -r _; do :; done
"$1" stop --pgdata "$2/data" --mode immediate --timeout 60 >/dev/null 2>&1
cd / && rm -rf "$2"`

// Cluster is a private PostgreSQL in a temporary folder of its own.
// Its methods are not safe for concurrent use.
type Cluster struct {
	bin     string // folder of the programs
	dir     string // holds data, the socket and the log
	port    int    // kept over restarts
	owner   owner
	fast    bool // it does not wait for the disk
	watcher *exec.Cmd
	alive   io.Closer // the pipe whose end tells the watcher to clean up
}

// NewCluster makes a cluster and starts it. Close removes it.
func NewCluster(ctx context.Context) (*Cluster, error) { return newCluster(ctx, false) }

// NewFastCluster makes a cluster that does not wait for the disk. Killing its
// server loses nothing, because the system keeps what was written; only the end
// of the machine would. So tests find the same in half the time, and
// measurements do not.
func NewFastCluster(ctx context.Context) (*Cluster, error) { return newCluster(ctx, true) }

func newCluster(ctx context.Context, fast bool) (*Cluster, error) {
	owner, err := clusterOwner()
	if err != nil {
		return nil, err
	}
	bin, err := findBinaries(ctx, owner, candidateFolders(os.Getenv("PATH")))
	if err != nil {
		return nil, err
	}
	dir, err := makeFolder(ctx, owner, os.TempDir(), "/tmp", "/var/tmp")
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir, owner: owner, fast: fast}
	// Not bound to the caller's context: the watcher must outlive it.
	if err := c.watch(context.WithoutCancel(ctx)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.initialise(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// makeFolder makes the cluster's folder in the first of the parents that the
// owner can enter: root's temporary folder may be closed to everybody else.
func makeFolder(ctx context.Context, owner owner, parents ...string) (string, error) {
	var tries error
	for _, parent := range parents {
		dir, err := os.MkdirTemp(parent, "pawl-postgres-")
		if err != nil {
			tries = errors.Join(tries, err)
			continue
		}
		err = owner.give(dir)
		if err == nil {
			err = owner.command(ctx, dir, "/bin/sh", "-c", ":").Run()
		}
		if err == nil {
			return dir, nil
		}
		tries = errors.Join(tries, fmt.Errorf("enter %s: %w", dir, err), os.RemoveAll(dir))
	}
	return "", fmt.Errorf("make a folder for the cluster: %w", tries)
}

// watch starts the process that cleans up when this one ends.
func (c *Cluster) watch(ctx context.Context) error {
	watcher := c.owner.command(ctx, "/", "/bin/sh", "-c", watchScript, "watch", c.program("pg_ctl"), c.dir)
	alive, err := watcher.StdinPipe()
	if err != nil {
		return fmt.Errorf("make the watcher's pipe: %w", err)
	}
	if err := watcher.Start(); err != nil {
		return fmt.Errorf("start the watcher: %w", err)
	}
	c.watcher, c.alive = watcher, alive
	return nil
}

// initialise makes the data folder and starts PostgreSQL on a port that
// nobody else has.
func (c *Cluster) initialise(ctx context.Context) error {
	// The folder is thrown away, so only making it may skip the disk; the
	// server itself syncs as any other.
	initdb := func(locale ...string) error {
		return c.run(ctx, "initdb", append([]string{"--pgdata", c.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--locale=C"}, locale...)...)
	}
	// Texts are sorted as people do it, as in most installations: by letters first,
	// without regard to case and punctuation. Before version 15, or without ICU, a
	// cluster cannot be made so, and they are sorted by bytes.
	if err := initdb("--locale-provider=icu", "--icu-locale=en-US-u-ka-shifted"); err != nil {
		if err := initdb(); err != nil {
			return err
		}
	}
	var tries error
	for range startTries {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		if err := c.configure(port); err != nil {
			return err
		}
		err = c.Start(ctx)
		if err == nil {
			return nil
		}
		tries = errors.Join(tries, err)
		if !strings.Contains(c.log(), "could not bind") {
			break
		}
	}
	return tries
}

// configure appends the settings; the last one of a name counts.
func (c *Cluster) configure(port int) (err error) {
	c.port = port
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the cluster's settings: %w", err)
	}
	defer func() { err = errors.Join(err, conf.Close()) }()
	if c.fast {
		if _, err := fmt.Fprint(conf, "fsync = off\nfull_page_writes = off\n"); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(conf, "port = %d\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '%s'\nmax_connections = 200\n",
		port, strings.ReplaceAll(c.dir, "'", "''"))
	return err
}

// freePort returns a port that is free at this moment.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	var tries error
	for range startTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		tries = errors.Join(tries, err)
	}
	return 0, fmt.Errorf("find a free port: %w", tries)
}

// URL is the address of the cluster's own database postgres. It stays the
// same over restarts.
func (c *Cluster) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

// Start starts a stopped server and waits until it accepts connections.
func (c *Cluster) Start(ctx context.Context) error {
	return c.run(ctx, "pg_ctl", "start", "--wait", "--timeout", "60", "--silent", "--pgdata", c.data(), "--log", c.logFile())
}

// Stop ends open connections, writes a checkpoint and stops the server.
func (c *Cluster) Stop(ctx context.Context) error { return c.stop(ctx, "fast") }

// Kill stops the server at once, as a crash would: no checkpoint, so that the
// next start recovers from the write-ahead log.
func (c *Cluster) Kill(ctx context.Context) error { return c.stop(ctx, "immediate") }

func (c *Cluster) stop(ctx context.Context, mode string) error {
	return c.run(ctx, "pg_ctl", "stop", "--wait", "--timeout", "60", "--silent", "--pgdata", c.data(), "--mode", mode)
}

// Close stops the server, if it runs, and removes the folder.
func (c *Cluster) Close() error {
	if err := c.alive.Close(); err != nil {
		return fmt.Errorf("end the watcher's pipe: %w", err)
	}
	if err := c.watcher.Wait(); err != nil {
		return fmt.Errorf("remove the cluster in %s: %w", c.dir, err)
	}
	return nil
}

// run runs one of PostgreSQL's programs as the owner; its error carries what
// the program and the server said.
func (c *Cluster) run(ctx context.Context, name string, args ...string) error {
	cmd := c.owner.command(ctx, c.dir, c.program(name), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // messages are compared
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s %s: %w\n%s%s", name, args[0], err, out, c.log())
	}
	return nil
}

// program is the path of a program. Some machines have links to the server's own
// programs in PATH, and the others only where those lead.
func (c *Cluster) program(name string) string {
	path := filepath.Join(c.bin, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if server, err := filepath.EvalSymlinks(filepath.Join(c.bin, "postgres")); err == nil {
		return filepath.Join(filepath.Dir(server), name)
	}
	return path
}

func (c *Cluster) data() string    { return filepath.Join(c.dir, "data") }
func (c *Cluster) logFile() string { return filepath.Join(c.dir, "postgres.log") }

// log returns the last of what the server wrote, or nothing before its first
// start.
func (c *Cluster) log() string {
	text, _ := os.ReadFile(c.logFile()) // absent until the first start
	return string(text[max(0, len(text)-logShown):])
}
