//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// node is one process of Pawl with a folder of its own.
type node struct {
	name    string
	dir     string
	url     string
	binary  string
	args    []string
	proxies []*proxy.Proxy // before each server of the database

	mu   sync.Mutex
	cmd  *exec.Cmd     // guarded by mu; nil: it does not run
	done chan struct{} // guarded by mu: closed when cmd ended
	log  *os.File
}

func newNode(name, binary, dir string, args ...string) (*node, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "pawl.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	args = append([]string{"serve", "--addr", addr, "--allow-private", "127.0.0.1/32", "--drain", "10s"}, args...)
	return &node{name: name, dir: dir, url: "http://" + addr, binary: binary, args: args, log: log}, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only its number is wanted
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // see above
	return l.Addr().String(), nil
}

// start starts the process and does not wait for it.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		return nil
	}
	cmd := exec.Command(n.binary, n.args...) //nolint:noctx // it is ended by kill
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, n.log, n.log
	// It dies with this process, whatever that dies of.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_, _ = fmt.Fprintf(n.log, "--- chaos: started at %s\n", time.Now().UTC().Format(time.RFC3339Nano))
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	n.cmd, n.done = cmd, make(chan struct{})
	go func(done chan struct{}) { _ = cmd.Wait(); close(done) }(n.done)
	return nil
}

func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s)
	}
}

func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// kill ends it at once, stopped or not.
func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.done
	_, _ = fmt.Fprintf(n.log, "--- chaos: killed at %s\n", time.Now().UTC().Format(time.RFC3339Nano))
	n.cmd = nil
}

// stop ends it in order, and reports whether it did in time.
func (n *node) stop() bool {
	n.signal(syscall.SIGTERM)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return true
	}
	inTime := true
	select {
	case <-n.done:
	case <-time.After(40 * time.Second):
		inTime = false
		_ = n.cmd.Process.Kill()
		<-n.done
	}
	n.cmd = nil
	return inTime
}

// ended reports whether the process ended without having been told to.
func (n *node) ended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

func (n *node) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// readyWithin is how long a node may take to work, or to work again.
const readyWithin = 30 * time.Second

// awaitReady waits until the node works.
func (n *node) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !n.ready(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready within %s", n.name, readyWithin)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (n *node) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(n.dir, ".pawl", name)) // absent: empty
	return strings.TrimSpace(string(b))
}

func (n *node) eachProxy(do func(*proxy.Proxy)) {
	for _, p := range n.proxies {
		do(p)
	}
}

func (n *node) logText() string {
	b, _ := os.ReadFile(filepath.Join(n.dir, "pawl.log"))
	return string(b)
}
