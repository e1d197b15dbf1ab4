package web

import (
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

type jobsPage struct {
	Jobs                   []client.Job
	State, Task, Lane, Key string
	States                 []string
	CanWrite               bool
	Pager                  pager
}

// Filtered reports whether something picks the jobs that could be changed together.
func (p jobsPage) Filtered() bool {
	return p.State != "" || p.Task != "" || p.Lane != "" || p.Key != ""
}

// Fails reports whether there can be failed ones among them, and Waits whether any
// can be cancelled.
func (p jobsPage) Fails() bool { return p.State == "" || p.State == string(store.JobFailed) }

// Waits: see Fails.
func (p jobsPage) Waits() bool {
	return p.State != string(store.JobSucceeded) && p.State != string(store.JobCancelled)
}

const jobsPerPage = 50

func (s *Site) showJobs(w http.ResponseWriter, r *http.Request, v *visit) {
	query := listQuery(r, jobsPerPage, "state", "task", "lane", "key")
	var list client.Page[client.Job]
	if err := s.ask(r.Context(), v, "/api/v1/jobs", query, &list); err != nil {
		s.problem(w, r, err)
		return
	}
	out := jobsPage{Jobs: list.Items, State: query.Get("state"), Task: query.Get("task"), Lane: query.Get("lane"), Key: query.Get("key"), CanWrite: v.may("jobs", "write"), Pager: pagerOf(r, list.NextCursor)}
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

// mostChanged bounds what one press of a button changes; each request changes 1000.
const mostChanged = 20_000

func (s *Site) retryJobs(w http.ResponseWriter, r *http.Request, v *visit) {
	s.changeJobs(w, r, v, client.JobsRetryPath, "retried")
}

func (s *Site) cancelJobs(w http.ResponseWriter, r *http.Request, v *visit) {
	s.changeJobs(w, r, v, client.JobsCancelPath, "cancelled")
}

// changeJobs does something to all jobs that the page's filter picks.
func (s *Site) changeJobs(w http.ResponseWriter, r *http.Request, v *visit, path, did string) {
	text := func(name string) string { return strings.TrimSpace(r.FormValue(name)) }
	ask := client.JobsChangeRequest{Filter: client.JobFilterRequest{Task: text("task"), Lane: text("lane"), Key: text("key"), State: text("state"), Error: text("error")}}
	var done client.ChangedJobs
	sum := 0
	for more := true; more && sum < mostChanged; ask.Cursor, more = string(done.NextCursor), done.More {
		if err := s.inside.call(r.Context(), v.who.text, http.MethodPost, path, ask, &done); err != nil {
			if sum > 0 {
				break // the rest is still there, and the page shows it
			}
			s.refused(w, r, err)
			return
		}
		sum += done.Changed
	}
	said := plural(sum, "job", "jobs") + " " + did + "."
	if done.More {
		said += " There may be more: do it again."
	}
	s.done(w, r, v, notice{Text: said})
}
