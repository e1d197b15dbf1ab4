package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// A server that is killed while a job runs picks the job up as soon as it is
// back.
func TestKilledServerPicksUpItsJobAtOnce(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newUpstream(t)
		s := serve(t, database)
		j := s.enqueue(post(u.URL + "/hold"))
		s.eventually("the job runs", func() bool { return u.got(j.ID) == 1 })
		s.kill()
		close(u.hold)
		s.start()
		begin := time.Now()
		s.eventually("the job succeeded", func() bool { return s.job(j.ID).State == "succeeded" })
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %v after the restart", took)
		}
		if n := u.got(j.ID); n != 2 {
			t.Errorf("sent %d times, want twice with one key", n)
		}
	})
}

// Kills at random instants, while jobs are enqueued, claimed, run and
// finished, lose nothing that was acknowledged.
func TestRandomKillsLoseNothing(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newUpstream(t)
		s := serve(t, database)
		var ids []string
		for round := range 6 {
			stop := time.Now().Add(time.Duration(50+rand.IntN(400)) * time.Millisecond)
			for i := 0; time.Now().Before(stop); i++ {
				body := post(u.URL + "/a")
				switch i % 3 {
				case 1:
					body["lane"] = fmt.Sprintf("lane-%d", i%7)
				case 2:
					body["runAt"] = time.Now().Add(time.Duration(rand.IntN(800)) * time.Millisecond)
				}
				var j job
				if status, err := s.tryCall("POST", "/api/v1/jobs", body, &j); err != nil || status != http.StatusCreated {
					t.Fatalf("round %d: %d, %v", round, status, err)
				}
				ids = append(ids, j.ID)
			}
			s.kill()
			s.start()
		}
		s.eventually("every job arrived", func() bool {
			for _, id := range ids {
				if u.got(id) == 0 {
					return false
				}
			}
			return true
		})
		for _, id := range ids {
			s.eventually("job "+id+" ended", func() bool { return s.job(id).State == "succeeded" })
		}
		t.Logf("%d jobs, %d calls", len(ids), u.total())
	})
}

// Jobs of a lane never overlap at the other side, although the server dies and
// is restarted.
func TestLaneNeverOverlaps(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := newUpstream(t)
		s := serve(t, database)
		var last job
		for range 200 {
			last = s.enqueue(with(post(u.URL+"/lane"), "lane", "one"))
		}
		s.kill()
		s.start()
		s.eventually("all ran", func() bool { return s.job(last.ID).State == "succeeded" })
		if u.most["/lane"] != 1 {
			t.Errorf("%d calls of one lane at once", u.most["/lane"])
		}
	})
}

func TestTwoServersOnePostgresSurviveOneAnother(t *testing.T) {
	t.Parallel() // it waits more than it works
	database := pgtest.URL(t)
	u := newUpstream(t)
	a := serve(t, database)
	b := serve(t, database)
	held := a.enqueue(post(u.URL + "/hold"))
	a.eventually("the job runs", func() bool { return u.got(held.ID) == 1 })
	var ids []string
	for i := range 60 {
		s := []*server{a, b}[i%2]
		ids = append(ids, s.enqueue(with(post(u.URL+"/a"), "runAt", time.Now().Add(time.Duration(i)*50*time.Millisecond))).ID)
	}
	a.kill()
	close(u.hold)
	for _, id := range append(ids, held.ID) {
		b.eventually("job "+id+" ended", func() bool { return b.job(id).State == "succeeded" })
	}
	// Either server may have run the held job; if it was the dead one, the
	// other sent it again.
	if n := u.got(held.ID); n != 1 && n != 2 {
		t.Errorf("the held job was sent %d times", n)
	}
	for _, id := range ids {
		if u.got(id) < 1 {
			t.Errorf("job %s never arrived", id)
		}
	}
}

// PostgreSQL is stopped and started again under a running server.
func TestPostgresGoesAwayUnderAServer(t *testing.T) {
	pg := pgtest.NewServer(t)
	u := newUpstream(t)
	s := serve(t, pg.URL())
	j := s.enqueue(with(post(u.URL+"/a"), "runAt", time.Now().Add(2*time.Second)))
	pg.Stop()
	s.eventually("it says that it is not ready", func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
	if s.status("/healthz") != http.StatusOK {
		t.Error("the process is not healthy any more")
	}
	var problem struct {
		Code string `json:"code"`
		Hint string `json:"hint"`
	}
	if status := s.call("POST", "/api/v1/jobs", post(u.URL+"/b"), &problem); status != http.StatusServiceUnavailable || problem.Code != "unavailable" || problem.Hint == "" {
		t.Errorf("enqueue without a database: %d %+v", status, problem)
	}
	pg.Start()
	s.eventually("it is ready again", func() bool { return s.status("/readyz") == http.StatusOK })
	s.eventually("the job ran", func() bool { return s.job(j.ID).State == "succeeded" })
	if n := u.got(j.ID); n != 1 {
		t.Errorf("sent %d times", n)
	}
}
