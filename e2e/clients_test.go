package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pawlrun/pawl/internal/npmtest"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// The clients of other languages have tests in their own, which speak to the real
// server. Here they are given one, on both databases, and fail where they fail.

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	dir := typescriptClient(t)
	node(t, dir, "node_modules/typescript/bin/tsc", "-p", "test")
	files, err := filepath.Glob(filepath.Join(dir, "test", "dist", "*.test.js"))
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	pgtest.Both(t, func(t *testing.T, database string) {
		said := program(t, dir, clientEnv(t, database), "node", append([]string{"--test", "--test-concurrency=4", "--test-reporter=tap"}, files...)...)
		if strings.Contains(said, "# tests 0\n") || !strings.Contains(said, "# skipped 0\n") {
			t.Errorf("not all tests ran:\n%s", said)
		}
	})
}

func TestPythonClient(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "MYPY_CACHE_DIR="+t.TempDir())
	program(t, dir, env, "mypy", "--strict", "--python-version", "3.9", "pawl")
	pgtest.Both(t, func(t *testing.T, database string) {
		env := append(clientEnv(t, database), "PYTHONPATH="+dir)
		said := program(t, dir, env, python(t), "-W", "error", "-m", "unittest", "discover", "-t", ".", "-s", "tests")
		if strings.Contains(said, "Ran 0 tests") || strings.Contains(said, "skipped=") {
			t.Errorf("not all tests ran:\n%s", said)
		}
	})
}

// clientEnv starts a server and tells a client's tests of it.
func clientEnv(t *testing.T, database string) []string {
	t.Helper()
	s := serve(t, database)
	env := append(os.Environ(), "PAWL_URL="+s.url, "PAWL_TOKEN="+s.token(), "PYTHONDONTWRITEBYTECODE=1")
	if strings.HasPrefix(database, "postgres") {
		env = append(env, "PAWL_TEST_APPLICATION="+shopRole(t, database))
	}
	return env
}

// program runs a program to its end, and returns what it said.
func program(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = 10 * time.Second // what it left running may hold its output
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}

func node(t *testing.T, dir string, args ...string) {
	t.Helper()
	program(t, dir, os.Environ(), "node", args...)
}

// python is one that has the driver which applications use.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import psycopg").Run() == nil {
			return name
		}
	}
	t.Fatal("Python with psycopg is missing: install the packages python3 and python3-psycopg")
	return ""
}

// typescriptClient builds the client in a folder of its own, as it is published.
func typescriptClient(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyTypeScript(t, "../clients/typescript", dir)
	modules := npmModules(t, "../clients/typescript")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	node(t, dir, "node_modules/typescript/bin/tsc", "-p", ".")
	return dir
}

// copyTypeScript copies what Git has of a folder.
func copyTypeScript(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "dist"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, text, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// npmModules is what the package-lock.json of a folder names.
func npmModules(t *testing.T, dir string) string {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return filepath.Join(npmtest.Install(t, files), "node_modules")
}
