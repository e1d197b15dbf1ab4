package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// Ask starts a program, sends it the request and returns its answer. The
// process is gone when Ask returns; the end of ctx ends it.
func Ask(ctx context.Context, program string, req Request) (Answer, error) {
	// Its own limit comes first, so that it can say how far it came.
	ctx, cancel := context.WithTimeout(ctx, req.Limit+2*closeGrace)
	defer cancel()
	line, err := json.Marshal(req)
	if err != nil {
		return Answer{}, err
	}
	cmd := exec.CommandContext(ctx, program)
	var out bytes.Buffer
	var noise tail
	cmd.Stdout, cmd.Stderr = &out, &noise
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = closeGrace // then it is killed
	in, err := cmd.StdinPipe()
	if err != nil {
		return Answer{}, fmt.Errorf("open pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return Answer{}, fmt.Errorf("start process: %w", err)
	}
	_, sent := in.Write(append(line, '\n')) // Wait closes it, not before the process has ended
	ended := cmd.Wait()
	var answer Answer
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return Answer{}, fmt.Errorf("read answer: %w%s", errors.Join(ctx.Err(), sent, ended, err), noise)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

// tail keeps the end of what a process says on standard error.
type tail []byte

const tailSize = 2000 // bytes

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-tailSize):]
	return len(p), nil
}

func (t tail) String() string {
	if len(t) == 0 {
		return ""
	}
	return "; its last words: " + strings.TrimSpace(string(t))
}
