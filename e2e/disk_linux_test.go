package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// limitFiles bounds the size of the files that a running process may write,
// as a full disk would. Zero lifts the bound.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: bytes, Max: ^uint64(0)}
	if bytes == 0 {
		limit.Cur = ^uint64(0)
	}
	const fsize = 1 // RLIMIT_FSIZE
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), fsize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatalf("prlimit: %v", errno)
	}
}

// A disk that is full is said so, loses nothing that was acknowledged, and
// heals by itself.
func TestFullDiskUnderAServer(t *testing.T) {
	u := newUpstream(t)
	s := serve(t, "sqlite:.pawl/pawl.db")
	big := map[string]any{"url": u.URL + "/a", "body": strings.Repeat("x", 50_000)}
	var ids []string
	add := func() int {
		var j job
		status := s.call("POST", "/api/v1/jobs", map[string]any{"task": "http", "payload": big, "runAt": time.Now().Add(4 * time.Second)}, &j)
		if status == http.StatusCreated {
			ids = append(ids, j.ID)
		}
		return status
	}
	for range 5 {
		if status := add(); status != http.StatusCreated {
			t.Fatalf("enqueue answered %d", status)
		}
	}
	limitFiles(t, s.cmd.Process.Pid, 400_000)
	refused := 0
	for range 40 {
		if add() == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused == 0 {
		t.Fatal("the disk never was full")
	}
	if status := s.status("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("readyz answered %d with a full disk", status)
	}
	limitFiles(t, s.cmd.Process.Pid, 0)
	s.eventually("it is ready again", func() bool { return s.status("/readyz") == http.StatusOK })
	for _, id := range ids {
		s.eventually("job "+id+" ended", func() bool { return s.job(id).State == "succeeded" })
		if n := u.got(id); n != 1 {
			t.Errorf("job %s was sent %d times", id, n)
		}
	}
	if !strings.Contains(s.log.String(), "the database can be written again") {
		t.Error("the log does not say that it goes on")
	}
}

// A disk that becomes full in the middle of a prune leaves everything as a step left it,
// and the next pass ends what it began.
func TestFullDiskUnderAPrune(t *testing.T) {
	t.Setenv("PAWL_KEEP", "job-history=1s")
	s := serve(t, "sqlite:.pawl/pawl.db")
	type pruned struct {
		Rows int64 `json:"rows"`
	}
	const jobs = 600
	last := ""
	for i := range jobs {
		var j job
		if status := s.call("POST", "/api/v1/jobs", map[string]any{"task": "log", "payload": map[string]any{"message": strconv.Itoa(i)}}, &j); status != http.StatusCreated {
			t.Fatalf("enqueue answered %d", status)
		}
		last = j.ID
	}
	s.eventually("the last job ended", func() bool { return s.job(last).State == "succeeded" })
	var old pruned
	s.eventually("all of it is old", func() bool {
		return s.call("POST", "/api/v1/prune?dryRun=true", nil, &old) == http.StatusOK && old.Rows >= jobs
	})
	log, err := os.Stat(filepath.Join(s.dir, ".pawl", "pawl.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	limitFiles(t, s.cmd.Process.Pid, uint64(log.Size())/2) // the log of the file is used from its beginning, or grows
	refused := false
	for range 20 {
		var none pruned
		if refused = s.call("POST", "/api/v1/prune", nil, &none) == http.StatusServiceUnavailable; refused {
			break
		}
		s.call("POST", "/api/v1/jobs", map[string]any{"task": "log", "payload": map[string]any{"message": strings.Repeat("x", 50_000)}, "runAt": time.Now().Add(time.Hour)}, nil)
	}
	if !refused {
		t.Fatal("the disk never was full")
	}
	limitFiles(t, s.cmd.Process.Pid, 0)
	s.eventually("it is ready again", func() bool { return s.status("/readyz") == http.StatusOK })
	var done pruned
	if status := s.call("POST", "/api/v1/prune", nil, &done); status != http.StatusOK {
		t.Fatalf("prune answered %d", status)
	}
	var left struct {
		Items []job `json:"items"`
	}
	if status := s.call("GET", "/api/v1/jobs?state=succeeded&task=log", nil, &left); status != http.StatusOK || len(left.Items) != 0 {
		t.Errorf("%d: %d outcomes are left", status, len(left.Items))
	}
}
