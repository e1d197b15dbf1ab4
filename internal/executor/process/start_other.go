//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// attributes: a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func start(cmd *exec.Cmd) error { return cmd.Start() }

// marked are the groups of processes that have a mark, where that can be told.
func marked(map[string]bool) []int { return nil }
