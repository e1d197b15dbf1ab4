package web

import (
	"net/http"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

type jobsPage struct {
	Jobs              []client.Job
	State, Task, Lane string
	States            []string
	Pager             pager
}

const jobsPerPage = 50

func (s *Site) showJobs(w http.ResponseWriter, r *http.Request, v *visit) {
	query := listQuery(r, jobsPerPage, "state", "task", "lane")
	var list client.Page[client.Job]
	if err := s.ask(r.Context(), v, "/api/v1/jobs", query, &list); err != nil {
		s.problem(w, r, err)
		return
	}
	out := jobsPage{Jobs: list.Items, State: query.Get("state"), Task: query.Get("task"), Lane: query.Get("lane"), Pager: pagerOf(r, list.NextCursor)}
	for _, state := range store.JobStates() {
		out.States = append(out.States, string(state))
	}
	f := s.frameFor(r, v, "jobs", "Jobs")
	f.Live = everyLane
	s.show(w, r, "jobs.html", f, out)
}

type jobPage struct {
	Job      client.Job
	CanWrite bool
}

// Waits reports whether the job can be cancelled.
func (p jobPage) Waits() bool {
	return p.Job.State == string(store.JobScheduled) || p.Job.State == string(store.JobPending) || p.Job.State == string(store.JobRunning)
}

func (s *Site) showJob(w http.ResponseWriter, r *http.Request, v *visit) {
	var one client.Job
	if err := s.ask(r.Context(), v, "/api/v1/jobs/"+segment(r, "id"), nil, &one); err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "jobs", "Job "+one.ID)
	f.Live = everyLane
	s.show(w, r, "job.html", f, jobPage{one, v.may("jobs", "write") && !one.Internal})
}

func (s *Site) retryJob(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, "/api/v1/jobs/"+segment(r, "id")+"/retry", nil, "Retrying now.")
}

func (s *Site) cancelJob(w http.ResponseWriter, r *http.Request, v *visit) {
	if err := s.inside.remove(r.Context(), v.who.text, "/api/v1/jobs/"+segment(r, "id")); err != nil {
		s.refused(w, r, err)
		return
	}
	s.done(w, r, v, notice{Text: "Cancelled."})
}
