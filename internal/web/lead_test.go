package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Jobs that failed for good belong to no lane: the overview tells of them, those
// who may see them, and leads there.
func TestOverviewTellsOfFailedJobs(t *testing.T) {
	both(t, func(r *rig) {
		b := r.signedIn(r.admin)
		fail := func(n int) {
			r.ask("POST", "/api/v1/jobs", map[string]any{"task": "fail"}, nil)
			r.eventually("the job has failed", func() bool {
				var list client.Page[client.Job]
				r.ask("GET", "/api/v1/jobs?state=failed", nil, &list)
				return len(list.Items) == n
			})
		}
		b.get("/").want(http.StatusOK).hasNot("Needs attention</h2>", "failed for good")
		fail(1)
		b.get("/").want(http.StatusOK).has("Needs attention</h2>", `<a href="/jobs?state=failed">1 job</a> <span>failed for good. Retry or delete it.`)
		fail(2)
		b.get("/").want(http.StatusOK).has(`<a href="/jobs?state=failed">2 jobs</a> <span>failed for good. Retry or delete them.`)
		b.get("/jobs?state=failed").want(http.StatusOK).has("fail")
		b.get("/?status=Idle").want(http.StatusOK).hasNot("failed for good")
		r.signedIn(r.token("vera", userstore.RoleViewer, "lanes:read")).get("/").want(http.StatusOK).hasNot("failed for good")
	})
}

// What a page speaks of can be followed: the marks of the timeline to their runs,
// the entries of the audit log to their subjects, grants to their schedules.
func TestPagesLeadToWhatTheySpeakOf(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("asks", "ask", "o-1")
		asking := r.waitWord("asks", "Needs attention")
		r.ask("POST", "/api/v1/runs/"+asking.ID+"/approve", nil, nil)
		r.fetching("prices", "/prices")
		r.waitLane("source", "prices", "Idle")
		r.schedule("poems", "poet", "30 2 * * *") // and it runs once
		b := r.signedIn(r.admin)
		follow := func(page, pattern string, least int) {
			t.Helper()
			var found [][]string
			r.eventually(page+" leads on", func() bool {
				found = regexp.MustCompile(pattern).FindAllStringSubmatch(b.get(page).want(http.StatusOK).body, -1)
				return len(found) >= least
			})
			for _, m := range found {
				b.get(strings.ReplaceAll(m[1], "&amp;", "&")).want(http.StatusOK)
			}
		}
		follow("/timeline", `<a href="(/runs/[^"]+)" tabindex="-1" aria-label="[^"]*20\d\d-`, 3)
		follow("/audit", `<a class="break" href="([^"]+)">(?:run|workflow|source|schedule):`, 4)
		follow("/grants", `created for <a href="(/schedules/[^"]+)">poems</a>`, 1)
		for subject, want := range map[string]string{"run:a/b": "/runs/a%2Fb", "workflow:": "", "token:x": "", "javascript:alert(1)": "", "": "", "//evil": "", "source:x:y": "/sources/x:y"} {
			if got := subjectPath(subject); got != want {
				t.Errorf("%q leads to %q, want %q", subject, got, want)
			}
		}
	})
}
