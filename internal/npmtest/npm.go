// Package npmtest installs programs and libraries of npm for tests, in the versions
// that a package-lock.json pins.
package npmtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Install copies the files, which have a package.json and a package-lock.json among
// them, to a folder that outlives the tests, and installs beside them what they name.
// Who asks for the same files again gets the same folder.
func Install(t testing.TB, files fs.FS, options ...string) (folder string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: install the packages nodejs and npm", program)
		}
	}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(cache, "pawl-test", "npm", hex.EncodeToString(sum.Sum(nil)[:8]))
	if err := installOnce(t.Context(), files, folder, options); err != nil {
		t.Fatalf("install packages of npm: %v", err)
	}
	return folder
}

// installOnce makes the folder, unless it is there. Other processes may want the
// same at the same time.
func installOnce(ctx context.Context, files fs.FS, folder string, options []string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	lock, err := os.Create(folder + ".lock")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing is written to it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	part := folder + ".part"
	if err := errors.Join(os.RemoveAll(part), os.CopyFS(part, files)); err != nil {
		return err
	}
	npm := exec.CommandContext(ctx, "npm", append([]string{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, options...)...)
	npm.Dir = part
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, output)
	}
	return os.Rename(part, folder)
}
