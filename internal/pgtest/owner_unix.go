//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner is the user that a cluster's programs and files belong to. PostgreSQL
// refuses to run as root, so for root it is another user; the zero owner is
// the current one.
type owner struct {
	credential *syscall.Credential
}

// clusterOwner answers the current user, or for root the first of postgres
// and nobody that exists.
func clusterOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr != nil || gidErr != nil {
			continue
		}
		return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return owner{}, fmt.Errorf("PostgreSQL refuses to run as root and there is no user postgres or nobody: run the tests as another user")
}

// command prepares a program to run as the owner in dir, outside the
// terminal's process group: Ctrl-C is for the test, not for its database.
func (o owner) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: o.credential}
	return cmd
}

// give hands a folder to the owner.
func (o owner) give(dir string) error {
	if o.credential == nil {
		return nil
	}
	if err := os.Chown(dir, int(o.credential.Uid), int(o.credential.Gid)); err != nil {
		return fmt.Errorf("give the cluster's folder to its user: %w", err)
	}
	return nil
}
