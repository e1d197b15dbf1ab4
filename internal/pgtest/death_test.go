package pgtest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"
)

// envDie makes this test program play the process that dies.
const envDie = "PGTEST_DIE_WITH_A_CLUSTER"

func TestClusterDoesNotOutliveAProcessKilledWithSIGKILL(t *testing.T) {
	if os.Getenv(envDie) != "" {
		dieWithACluster(t)
	}
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatalf("make a pipe: %v", err)
	}
	defer func() { _ = reader.Close() }()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), envDie+"=1")
	child.ExtraFiles = []*os.File{writer}
	if err := child.Start(); err != nil {
		t.Fatalf("start the process that dies: %v", err)
	}
	_ = writer.Close() // the child has its own
	if err := child.Wait(); err == nil {
		t.Fatal("the process that dies ended in order")
	}
	// Watcher and server inherited the pipe, so that it ends when all are gone.
	if err := reader.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatalf("bound the wait: %v", err)
	}
	dir, err := io.ReadAll(reader)
	if err != nil || len(dir) == 0 {
		t.Fatalf("wait for the end of the cluster in %q: %v", dir, err)
	}
	if _, err := os.Stat(string(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s: %v, want that the folder is gone", dir, err)
	}
}

// dieWithACluster starts a cluster, tells its folder and kills this process.
func dieWithACluster(t *testing.T) {
	cluster, err := NewCluster(t.Context())
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	if _, err := os.NewFile(3, "pipe").WriteString(cluster.dir); err != nil {
		t.Fatalf("tell the folder: %v", err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatalf("find this process: %v", err)
	}
	_ = self.Kill()
	select {} // death is on its way
}
