package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// work starts pawl work for the task shell with a script, and returns what it says.
func (s *server) work(t *testing.T, script string, args ...string) (*exec.Cmd, *logBuffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	args = append(append([]string{"work", "shell"}, args...), "--", path)
	cmd := exec.Command(binary, args...)
	log := &logBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "PAWL_URL="+s.url, "PAWL_TOKEN="+s.token())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, log
}

// declare declares a task.
func (s *server) declare(name string, body map[string]any) {
	s.t.Helper()
	if status := s.call("PUT", "/api/v1/tasks/"+name, body, nil); status != http.StatusCreated {
		s.t.Fatalf("declare: %d", status)
	}
}

// show reads a job.
func (s *server) show(id string) (j client.Job) {
	s.t.Helper()
	s.call("GET", "/api/v1/jobs/"+id, nil, &j)
	return j
}

// pawl work runs a program for each job: its input, its result, its exit codes, and
// what it gives back when it is told to stop.
func TestPawlWork(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		s := serve(t, database)
		s.declare("shell", map[string]any{"maxAttempts": 1})
		cmd, log := s.work(t, `
			read -r what
			case "$what" in
			'"fail"') echo "it broke" >&2; exit 3 ;;
			'"later"') exit 75 ;;
			'"long"') echo started >&2; sleep 60 ;;
			'"text"') echo hello ;;
			*) printf '{"got": %s, "attempt": %s, "lane": "%s", "id": "%s"}' "$what" "$PAWL_ATTEMPT" "$PAWL_LANE" "$PAWL_JOB_ID" ;;
			esac`, "--concurrency", "4", "--later", "1h", "--drain", "1s")
		enqueue := func(payload any) string {
			return s.enqueue(map[string]any{"task": "shell", "payload": payload, "lane": fmt.Sprint("l-", payload)}).ID
		}
		ok, failed, later, text, long := enqueue(7), enqueue("fail"), enqueue("later"), enqueue("text"), enqueue("long")
		s.eventually("it is done", func() bool { return s.show(ok).State == "succeeded" })
		if got, want := string(s.show(ok).Result), `{"got": 7, "attempt": 1, "lane": "l-7", "id": "`+ok+`"}`; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("result %s, want %s", got, want)
		}
		s.eventually("the others ended", func() bool {
			return s.show(failed).State == "failed" && s.show(text).State == "succeeded" && s.show(later).State == "scheduled"
		})
		if j := s.show(failed); j.LastError != "exit status 3: it broke" {
			t.Errorf("failed with %q", j.LastError)
		}
		if j := s.show(later); j.Attempt != 0 || time.Until(j.RunAt.Time) < 50*time.Minute {
			t.Errorf("later: %+v", j)
		}
		if j := s.show(text); string(j.Result) != `"hello"` {
			t.Errorf("text: %s", j.Result)
		}
		s.eventually("the long one runs", func() bool { return strings.Contains(log.String(), "started") })
		_ = cmd.Process.Signal(syscall.SIGTERM)
		s.eventually("what it had is given back", func() bool { return s.show(long).State == "pending" })
		if j := s.show(long); j.Attempt != 0 {
			t.Errorf("given back: %+v", j)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("pawl work ended with %v: %s", err, log)
		}
	})
}

// Servers are killed at any instant, and so are workers: each job is done, and its
// end is written once.
func TestKillsOfServersAndWorkersLoseNoJob(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		s := serve(t, database)
		s.declare("shell", map[string]any{"lease": "2s", "maxAttempts": 100})
		done := filepath.Join(t.TempDir(), "done")
		script := fmt.Sprintf(`read -r n; echo "$PAWL_JOB_ID" >> %q; printf '%%s' "$n"`, done)
		ids := map[string]int{}
		worker, _ := s.work(t, script, "--concurrency", "4")
		for round := range 6 {
			for i := range 20 {
				id := s.enqueue(map[string]any{"task": "shell", "payload": i, "lane": fmt.Sprint("lane", i%5)}).ID
				ids[id] = i
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(50+rand.IntN(300))*time.Millisecond)
			<-ctx.Done()
			cancel()
			if round%2 == 0 {
				s.kill()
				s.start()
				continue
			}
			_ = worker.Process.Kill()
			_ = worker.Wait()
			worker, _ = s.work(t, script, "--concurrency", "4")
		}
		for id, n := range ids {
			s.eventually("job "+id+" ended", func() bool { return s.show(id).State == "succeeded" })
			if j := s.show(id); string(j.Result) != fmt.Sprint(n) {
				t.Errorf("job %s: %+v", id, j)
			}
		}
		raw, err := os.ReadFile(done)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d jobs, %d runs", len(ids), bytes.Count(raw, []byte("\n")))
	})
}

// PostgreSQL is restarted under workers.
func TestPostgresGoesAwayUnderWorkers(t *testing.T) {
	pg := pgtest.NewServer(t)
	s := serve(t, pg.URL())
	s.declare("shell", map[string]any{"lease": "3s", "maxAttempts": 100})
	s.work(t, `cat`, "--concurrency", "2")
	var ids []string
	for i := range 30 {
		ids = append(ids, s.enqueue(map[string]any{"task": "shell", "payload": i}).ID)
	}
	pg.Stop()
	pg.Start()
	for i, id := range ids {
		s.eventually("job "+id+" ended", func() bool { return s.show(id).State == "succeeded" })
		if j := s.show(id); string(j.Result) != fmt.Sprint(i) {
			t.Errorf("job %d: %+v", i, j)
		}
	}
}
