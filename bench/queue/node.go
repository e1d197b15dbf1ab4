package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

var errNoNode = errors.New("node or npm is not installed")

// nodeProgram runs one configuration of node/driver.mjs, whose packages are
// installed first.
func nodeProgram(configuration string) func(context.Context, benchDir) ([]string, error) {
	return func(ctx context.Context, bench benchDir) ([]string, error) {
		node, err := exec.LookPath("node")
		if err != nil {
			return nil, errNoNode
		}
		dir := filepath.Join(bench.root, "node")
		if err := installPackages(ctx, dir); err != nil {
			return nil, err
		}
		return []string{node, filepath.Join(dir, "driver.mjs"), configuration}, nil
	}
}

// installPackages installs what package-lock.json names, unless that was done.
func installPackages(ctx context.Context, dir string) error {
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("install Node packages: %w", err)
	}
	// npm writes this file last, and only when everything is in place.
	done, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errNoNode
	}
	install := exec.CommandContext(ctx, npm, "ci", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("install Node packages: %w: %s", err, out)
	}
	return nil
}
