package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a throw-away PostgreSQL on the loopback interface, with full
// durability.
type server struct {
	url    string
	binDir string
	dir    string // holds the data, the password and the log
	cred   *syscall.Credential
	cmd    *exec.Cmd
	gone   chan error // receives the end of the process
}

// serverStart bounds how long PostgreSQL may take to answer, and to stop.
const serverStart = 60 * time.Second

// serverSettings are the same for everybody: nothing that a commit waits for
// is turned off, and memory suits a machine with a few gigabytes.
const serverSettings = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
synchronous_commit = on
full_page_writes = on
max_connections = 200
shared_buffers = '512MB'
max_wal_size = '4GB'
checkpoint_timeout = '30min'
`

// countSettings load the counter of statements, which the idle scenario turns
// on for a while; it counts nothing otherwise.
const countSettings = `
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = none
`

// startServer creates a cluster below parent and starts it.
func startServer(ctx context.Context, parent string) (*server, error) {
	binDir, err := findPostgres(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "pawl-bench-pg-")
	if err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	s := &server{binDir: binDir, dir: dir, gone: make(chan error, 1)}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) start(ctx context.Context) error {
	var err error
	if s.cred, err = serverUser(s.dir); err != nil {
		return err
	}
	password := rand.Text()
	passwordFile := filepath.Join(s.dir, "password")
	if err := s.writeFile(passwordFile, password); err != nil {
		return fmt.Errorf("write password: %w", err)
	}
	initdb := s.command(ctx, "initdb", "-D", s.dataDir(), "-U", "bench", "--pwfile", passwordFile,
		"-A", "scram-sha-256", "-E", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("create cluster: %w: %s", err, out)
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "postgres", User: url.UserPassword("bench", password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/postgres", RawQuery: "sslmode=disable"}
	s.url = address.String()
	if err := s.configure(ctx, port); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := s.launch(); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

// configure appends to the settings that initdb wrote; the last one wins.
func (s *server) configure(ctx context.Context, port int) error {
	settings := serverSettings + "port = " + strconv.Itoa(port) + "\n"
	if s.hasStatementCounter(ctx) {
		settings += countSettings
	}
	f, err := os.OpenFile(filepath.Join(s.dataDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(settings)
	return errors.Join(err, f.Close())
}

// launch starts the server. It outlives a cancelled context, because it must
// be stopped in order, and after its clients.
func (s *server) launch() error {
	s.cmd = s.command(context.Background(), "postgres", "-D", s.dataDir())
	log, err := os.Create(s.logFile())
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	go func() { s.gone <- s.cmd.Wait() }()
	return nil
}

func (s *server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case end := <-s.gone:
			s.gone <- end
			log, _ := os.ReadFile(s.logFile())
			return fmt.Errorf("start PostgreSQL: %w: %s", end, log)
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL: %w", err)
		}
	}
}

// stop ends the server, fast but in order, and removes its files.
func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-s.gone:
		case <-time.After(serverStart):
			_ = s.cmd.Process.Signal(syscall.SIGQUIT)
			<-s.gone
		}
	}
	_ = os.RemoveAll(s.dir)
}

func (s *server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *server) logFile() string { return filepath.Join(s.dir, "log") }

// command runs a PostgreSQL program as the server's user, in a process group
// of its own so that an interrupt at the terminal does not reach it first.
func (s *server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.binDir, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

func (s *server) writeFile(name, text string) error {
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return err
	}
	if s.cred == nil {
		return nil
	}
	return os.Chown(name, int(s.cred.Uid), int(s.cred.Gid))
}

func (s *server) hasStatementCounter(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, filepath.Join(s.binDir, "pg_config"), "--pkglibdir").Output()
	if err != nil {
		return false
	}
	found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "pg_stat_statements.*"))
	return len(found) > 0
}

// serverUser returns who runs the server: nobody else, or, for root, whom
// PostgreSQL refuses, another user, who then owns the directory.
func serverUser(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // no credential means the present user
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errU, errG); err != nil {
			return nil, fmt.Errorf("read ids of %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, int(uid), int(gid))
	}
	return nil, errors.New("find a user for PostgreSQL: neither postgres nor nobody exists")
}

// findPostgres returns the directory with initdb and postgres; distributions
// keep it off the path.
func findPostgres(ctx context.Context) (string, error) {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if file, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(file))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		_, errInit := os.Stat(filepath.Join(dir, "initdb"))
		_, errRun := os.Stat(filepath.Join(dir, "postgres"))
		if errInit == nil && errRun == nil {
			return dir, nil
		}
	}
	return "", errors.New("find PostgreSQL: no initdb and postgres; install the server, or give -pg URL")
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
