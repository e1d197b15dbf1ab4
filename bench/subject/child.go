package subject

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Child is a queue in a process of its own, seen from the measuring program.
// Its methods are for one goroutine.
type Child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	noise *tail
}

// closeGrace is how long a process may take to exit by itself.
const closeGrace = 10 * time.Second

// StartChild starts cmd, which must have been made with a context: its end
// ends the process.
func StartChild(cmd *exec.Cmd) (*Child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	c := &Child{cmd: cmd, in: in, noise: &tail{}, out: json.NewDecoder(bufio.NewReaderSize(out, 1<<16))}
	cmd.Stderr = c.noise
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	cmd.WaitDelay = closeGrace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	return c, nil
}

// Do sends one request and returns its response. An error that the queue
// reported comes with the response.
func (c *Child) Do(req Request) (Response, error) {
	var resp Response
	if err := json.NewEncoder(c.in).Encode(req); err != nil {
		return resp, fmt.Errorf("%s: send request: %w%s", req.Op, err, c.noise)
	}
	if err := c.out.Decode(&resp); err != nil {
		return resp, fmt.Errorf("%s: read response: %w%s", req.Op, err, c.noise)
	}
	if resp.Error != "" {
		return resp, errors.New(resp.Error)
	}
	return resp, nil
}

// Close asks the process to clean up and waits until it is gone; one that
// does not go is killed.
func (c *Child) Close(ctx context.Context) error {
	kill := time.AfterFunc(closeGrace, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	_, err := c.Do(Request{Op: OpClose})
	_ = c.in.Close()
	return errors.Join(err, c.cmd.Wait())
}

// tail keeps the end of what a process says on standard error.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

const tailSize = 2000 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return "; its last words: " + strings.TrimSpace(string(t.text))
}
