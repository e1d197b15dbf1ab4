//go:build !unix

package repair

import "os/exec"

// There are no process groups here.
func ownGroup(*exec.Cmd) {}

// killGroup ends the command alone.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
