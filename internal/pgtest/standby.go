package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// syncWait bounds how long a standby may take until commits wait for it.
const syncWait = 30 * time.Second

// NewStandby makes a server that follows this one by streaming replication, and
// starts it. A commit on this one is answered once the standby has it, too, so
// that a failover loses nothing that was answered. Close removes it.
func (c *Cluster) NewStandby(ctx context.Context) (*Cluster, error) {
	dir, err := makeFolder(ctx, c.owner, os.TempDir(), "/tmp", "/var/tmp")
	if err != nil {
		return nil, err
	}
	s := &Cluster{bin: c.bin, dir: dir, owner: c.owner, fast: c.fast}
	if s.port, err = freePort(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.watch(context.WithoutCancel(ctx)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Follow(ctx, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Follow makes a stopped server the synchronous standby of another one, with the
// other's data in place of its own, and starts it. Its port stays.
func (c *Cluster) Follow(ctx context.Context, primary *Cluster) error {
	if err := os.RemoveAll(c.data()); err != nil {
		return fmt.Errorf("remove the old data: %w", err)
	}
	if err := primary.waitForStandby(ctx, false); err != nil { // else the copy would wait for itself
		return err
	}
	if err := c.run(ctx, "pg_basebackup", "--pgdata", c.data(), "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast",
		"--no-sync", "--dbname", primary.URL()); err != nil {
		return err
	}
	// Once it is promoted it has no standby, and does not wait for one.
	if err := c.set("synchronous_standby_names", ""); err != nil {
		return err
	}
	if err := c.configure(c.port); err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	return primary.waitForStandby(ctx, true)
}

// waitForStandby makes commits wait for a standby, or no longer.
func (c *Cluster) waitForStandby(ctx context.Context, wait bool) error {
	names := ""
	if wait {
		names = "*"
	}
	if err := c.set("synchronous_standby_names", names); err != nil {
		return err
	}
	if err := c.run(ctx, "pg_ctl", "reload", "--silent", "--pgdata", c.data()); err != nil {
		return err
	}
	if !wait {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return fmt.Errorf("look for the standby: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only asked
	for following := false; !following; {
		const query = `select exists (select 1 from pg_stat_replication where state = 'streaming' and sync_state = 'sync')`
		if err := conn.QueryRow(ctx, query).Scan(&following); err != nil {
			return fmt.Errorf("wait for the standby: %w", err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// Promote makes a standby the primary. The old one must be dead by then.
func (c *Cluster) Promote(ctx context.Context) error {
	return c.run(ctx, "pg_ctl", "promote", "--wait", "--timeout", "60", "--silent", "--pgdata", c.data())
}

// Host is the address of the server: host and port.
func (c *Cluster) Host() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

// LogFile is what the server writes to.
func (c *Cluster) LogFile() string { return c.logFile() }

// set appends a setting; the last one of a name counts.
func (c *Cluster) set(name, value string) (err error) {
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the cluster's settings: %w", err)
	}
	defer func() { err = errors.Join(err, conf.Close()) }()
	_, err = fmt.Fprintf(conf, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	return err
}
