package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// Two nodes that know both servers of a PostgreSQL go on by themselves when its
// synchronous standby takes over in the middle of work, and when it fails back:
// nothing that was acknowledged is lost, and nothing is done twice.
func TestPostgresFailsOverUnderTwoServers(t *testing.T) {
	t.Parallel() // it waits more than it works
	first := pgtest.NewServer(t)
	second := first.Standby()
	u := newUpstream(t)
	a := serveClerk(t, first.BothURL(second))
	b := serve(t, second.BothURL(first)) // the order does not matter
	b.kill()
	b.args = append(b.args, "--connection-dir", filepath.Join(a.dir, "connections"))
	b.start()
	var jobs, orders []string
	load := func(round string) {
		for i := range 30 {
			s := []*server{a, b}[i%2]
			var j job
			if status, err := s.tryCall("POST", "/api/v1/jobs", with(post(u.URL+"/lane"), "lane", fmt.Sprintf("lane-%d", i%5)), &j); err == nil && status == http.StatusCreated {
				jobs = append(jobs, j.ID)
			}
			if id := fmt.Sprintf("%s-%d", round, i); s.order(id) {
				orders = append(orders, id)
			}
		}
	}
	for i, pair := range [][2]*pgtest.Server{{first, second}, {second, first}} {
		old, next := pair[0], pair[1]
		load(fmt.Sprintf("before-%d", i))
		old.Kill()
		next.Promote()
		load(fmt.Sprintf("during-%d", i))
		for _, s := range []*server{a, b} {
			s.eventually("it is ready again", func() bool { return s.status("/readyz") == http.StatusOK })
		}
		load(fmt.Sprintf("after-%d", i))
		old.Follow(next)
	}
	if len(jobs) < 100 || len(orders) < 100 {
		t.Fatalf("only %d jobs and %d orders were taken", len(jobs), len(orders))
	}
	for _, id := range jobs {
		b.eventually("job "+id+" ended", func() bool { return b.job(id).State == "succeeded" })
	}
	// What was not acknowledged may have been committed all the same.
	wanted := func() bool {
		entered := a.lines()
		return !slices.ContainsFunc(orders, func(id string) bool { return !slices.Contains(entered, id) })
	}
	b.eventually("every order is in the book", wanted)
	b.eventually("the lane is idle", func() bool { return b.lane().Status == "Idle" })
	entered := a.lines()
	slices.Sort(entered)
	if once := slices.Compact(slices.Clone(entered)); len(once) != len(entered) {
		t.Errorf("orders were entered twice: %s", difference(once, entered))
	}
	if strings.Contains(a.log.String()+b.log.String(), "another node is dead") {
		return // a machine so slow that a node was replaced: what it had sent is sent again, with its key
	}
	for _, id := range jobs {
		if n := u.got(id); n != 1 {
			t.Errorf("job %s was sent %d times", id, n)
		}
	}
}
