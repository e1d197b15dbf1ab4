//go:build !unix

package pgtest

import (
	"context"
	"errors"
	"os/exec"
)

// owner is the current user: a private cluster is started on Unix only.
type owner struct{}

func clusterOwner() (owner, error) {
	return owner{}, errors.New("a private PostgreSQL is started on Linux and macOS only: set " + EnvURL + " to the URL of a running server")
}

func (owner) command(ctx context.Context, _, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}

func (owner) give(string) error { return nil }
