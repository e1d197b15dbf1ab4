package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindBinariesPassesOverProgramsThatDoNotRun(t *testing.T) {
	working, err := Find(t.Context())
	if err != nil {
		t.Fatalf("find PostgreSQL: %v", err)
	}
	broken := t.TempDir()
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatalf("write a program that does not run: %v", err)
		}
	}
	got, err := findBinaries(t.Context(), owner{}, []string{t.TempDir(), broken, working})
	if err != nil || got != working {
		t.Errorf("found %q (%v), want %q", got, err, working)
	}
}

func TestFindBinariesSaysHowToInstallWhatIsMissing(t *testing.T) {
	_, err := findBinaries(t.Context(), owner{}, []string{t.TempDir()})
	if !errors.Is(err, errNotInstalled) || !strings.Contains(err.Error(), "install") {
		t.Errorf("error %v, want the command that installs PostgreSQL", err)
	}
}

func TestMajorVersionReadsTheFolderNamesOfPackages(t *testing.T) {
	for folder, want := range map[string]int{
		"/usr/lib/postgresql/15/bin":         15,
		"/usr/lib/postgresql/9.6/bin":        0,
		"/usr/pgsql-17/bin":                  17,
		"/opt/homebrew/opt/postgresql@9/bin": 9,
	} {
		if got := majorVersion(folder); got != want {
			t.Errorf("majorVersion(%s) = %d, want %d", folder, got, want)
		}
	}
}

func TestCandidateFoldersLeaveOutRelativeOnes(t *testing.T) {
	got := candidateFolders(".:/first:tools:/second")
	if len(got) < 2 || got[0] != "/first" || got[1] != "/second" {
		t.Errorf("folders %v, want /first and /second ahead", got)
	}
}

func TestMakeFolderPassesOverParentsThatDoNotWork(t *testing.T) {
	owner, err := clusterOwner()
	if err != nil {
		t.Fatalf("choose the cluster's user: %v", err)
	}
	absent := filepath.Join(t.TempDir(), "absent")
	closed := t.TempDir() // to the cluster's user, when the tests run as root
	if err := os.Chmod(closed, 0o000); err != nil {
		t.Fatalf("close a folder: %v", err)
	}
	dir, err := makeFolder(t.Context(), owner, absent, closed, "/tmp")
	if err != nil {
		t.Fatalf("make a folder: %v", err)
	}
	if filepath.Dir(dir) != "/tmp" {
		t.Errorf("folder %s, want it in /tmp", dir)
	}
	if err := os.Remove(dir); err != nil {
		t.Errorf("remove the folder: %v", err)
	}
	if left, _ := os.ReadDir(closed); len(left) != 0 {
		t.Errorf("left %v behind in the closed folder", left)
	}
}

func TestCloseRemovesTheFolderAndTheServer(t *testing.T) {
	t.Parallel()
	cluster, err := NewCluster(t.Context())
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	url := cluster.URL()
	if err := cluster.Close(); err != nil {
		t.Fatalf("close the cluster: %v", err)
	}
	if _, err := os.Stat(cluster.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat the folder after Close: %v, want that it does not exist", err)
	}
	if err := execute(t.Context(), url, "SELECT 1"); err == nil {
		t.Errorf("the server still answers after Close")
	}
}

// A start that fails must say why, and must not leave its folder behind.
func TestStartReportsWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	cluster, err := NewCluster(t.Context())
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	}()
	if err := cluster.Stop(t.Context()); err != nil {
		t.Fatalf("stop: %v", err)
	}
	conf := filepath.Join(cluster.data(), "postgresql.conf")
	if err := os.WriteFile(conf, []byte("no_such_setting = 1\n"), 0o600); err != nil {
		t.Fatalf("spoil the settings: %v", err)
	}
	if err := cluster.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("start with spoiled settings: %v, want the server's own words", err)
	}
}
