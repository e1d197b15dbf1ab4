package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestJobRunsTenSecondsFromNowOnTime(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newUpstream(t)
		s := serve(t, database)
		at := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
		j := s.enqueue(with(post(u.URL+"/a"), "runAt", at))
		if j.State != "scheduled" {
			t.Errorf("state %q", j.State)
		}
		s.eventually("the job succeeded", func() bool { return s.job(j.ID).State == "succeeded" })
		late := u.at["job-"+j.ID].Sub(at)
		if late < 0 || late > 500*time.Millisecond {
			t.Errorf("it arrived %v after its time", late)
		}
		if n := u.got(j.ID); n != 1 {
			t.Errorf("it arrived %d times", n)
		}
	})
}

func TestStopLetsRunningJobsFinish(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newUpstream(t)
		s := serve(t, database)
		j := s.enqueue(post(u.URL + "/hold"))
		s.eventually("the job runs", func() bool { return u.got(j.ID) == 1 })
		go func() {
			s.eventually("it is stopping", func() bool { return strings.Contains(s.log.String(), "stopping") })
			close(u.hold)
		}()
		if code := s.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.start()
		if got := s.job(j.ID); got.State != "succeeded" || u.got(j.ID) != 1 {
			t.Errorf("state %s, sent %d times", got.State, u.got(j.ID))
		}
	})
}

func TestAdminTokenIsPrivateAndSurvives(t *testing.T) {
	s := serve(t, "sqlite:.pawl/pawl.db")
	path := filepath.Join(s.dir, ".pawl", "admin.token")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	before := s.token()
	s.kill()
	s.start()
	if s.token() != before || s.call("GET", "/api/v1/jobs", nil, nil) != http.StatusOK {
		t.Error("the token changed or does not work after a restart")
	}
	if strings.Contains(s.log.String(), before) {
		t.Error("the log shows the token")
	}
	db, err := os.ReadFile(filepath.Join(s.dir, ".pawl", "pawl.db"))
	if err != nil || strings.Contains(string(db), before) {
		t.Errorf("the database holds the token itself (%v)", err)
	}
}

func TestSecondServerOnOneFileIsRefused(t *testing.T) {
	s := serve(t, "sqlite:.pawl/pawl.db")
	second := exec.Command(binary, "serve", "--addr", freeAddr(t))
	second.Dir = s.dir
	out, err := second.CombinedOutput()
	if err == nil || second.ProcessState.ExitCode() != 4 {
		t.Errorf("exit code %d", second.ProcessState.ExitCode())
	}
	if want := strings.TrimPrefix(s.url, "http://"); !strings.Contains(string(out), want) {
		t.Errorf("the message does not name the first server at %s:\n%s", want, out)
	}
}
