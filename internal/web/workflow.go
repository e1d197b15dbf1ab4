package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// workflowHead is the part that all pages about a workflow have: its word and
// sentence, its actions, and what it needs a person for.
type workflowHead struct {
	client.Workflow
	Tab      string
	Base     string   // the address of its first page
	Newest   *runView // that a person is needed for, with what can be done about it; nil if there is none
	CanWrite bool
	CanRuns  bool
}

// Attention reports whether the card for a person is shown.
func (h workflowHead) Attention() bool { return h.Status == "Needs attention" }

func apiWorkflow(r *http.Request, below string) string {
	return "/api/v1/workflows/" + segment(r, "name") + below
}

// workflowHeadOf reads the head. The run that its issue is about is looked at only if
// somebody has to decide about it.
func (s *Site) workflowHeadOf(r *http.Request, v *visit, tab string) (h workflowHead, err error) {
	h = workflowHead{Tab: tab, Base: lanePath(string(pawl.KindWorkflow), r.PathValue("name")), CanWrite: v.may("workflows", "write"), CanRuns: v.may("runs", "write")}
	if err := s.ask(r.Context(), v, apiWorkflow(r, ""), nil, &h.Workflow); err != nil {
		return h, err
	}
	if !h.Attention() || !v.may("runs", "read") {
		return h, nil
	}
	if h.IssueRunID == "" {
		return h, nil
	}
	h.Newest = &runView{}
	return h, s.ask(r.Context(), v, "/api/v1/runs/"+string(h.IssueRunID), nil, h.Newest)
}

// showTab shows a page about a workflow: read fills its own part.
func (s *Site) showTab(w http.ResponseWriter, r *http.Request, v *visit, tab, title string, read func(h *workflowHead) (any, error)) {
	h, err := s.workflowHeadOf(r, v, tab)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	body, err := read(&h)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "overview", h.Name+title)
	f.Live = string(pawl.KindWorkflow) + ":" + h.Name
	s.show(w, r, "workflow_"+tab+".html", f, body)
}

type inputsPage struct {
	Head   *workflowHead
	Inputs []client.Input
	Status string
	Pager  pager
}

const inputsPerPage = 25

// showWorkflow is what came in and what was done about it: the view for
// people, without handlers, topics, phases and retries.
func (s *Site) showWorkflow(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showTab(w, r, v, "inputs", "", func(h *workflowHead) (any, error) {
		var list client.Page[client.Input]
		err := s.ask(r.Context(), v, apiWorkflow(r, "/inputs"), listQuery(r, inputsPerPage, "status"), &list)
		return inputsPage{h, list.Items, r.URL.Query().Get("status"), pagerOf(r, list.NextCursor)}, err
	})
}

type outputsPage struct {
	Head    *workflowHead
	Outputs []client.Output
	Pager   pager
}

func (s *Site) showWorkflowOutputs(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showTab(w, r, v, "outputs", " · outputs", func(h *workflowHead) (any, error) {
		var list client.Page[client.Output]
		err := s.ask(r.Context(), v, apiWorkflow(r, "/outputs"), listQuery(r, inputsPerPage), &list)
		return outputsPage{h, list.Items, pagerOf(r, list.NextCursor)}, err
	})
}

type workflowRunsPage struct {
	Head   *workflowHead
	Runs   []runView
	Chart  []runView // oldest first
	Status string
	Pager  pager
}

const runsPerPage = 50

// runsOf asks for the runs of a lane that its page shows.
func (s *Site) runsOf(r *http.Request, v *visit, kind pawl.Kind, lane string) (list client.Page[runView], err error) {
	query := listQuery(r, runsPerPage, "status")
	query.Set("kind", string(kind))
	query.Set("lane", lane)
	err = s.ask(r.Context(), v, "/api/v1/runs", query, &list)
	return list, err
}

func (s *Site) showWorkflowRuns(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showTab(w, r, v, "runs", " · runs", func(h *workflowHead) (any, error) {
		list, err := s.runsOf(r, v, pawl.KindWorkflow, h.Name)
		out := workflowRunsPage{Head: h, Runs: list.Items, Status: r.URL.Query().Get("status"), Pager: pagerOf(r, list.NextCursor)}
		for _, one := range slices.Backward(list.Items) {
			if !one.StartedAt.IsZero() && !one.EndedAt.IsZero() {
				out.Chart = append(out.Chart, one)
			}
		}
		return out, err
	})
}

// Millis is how long the run took, for charts.
func (r runView) Millis() string {
	return strconv.FormatInt(r.EndedAt.Sub(r.StartedAt.Time).Milliseconds(), 10)
}

type partitionsPage struct {
	Head       *workflowHead
	Partitions []client.Partition
	States     []partitionState
	State      string
	Pager      pager
}

// mostPartitions is where counting partitions ends.
const mostPartitions = 1000

// partitionState is a state of partitions with how many are in it.
type partitionState struct {
	Name  string
	Word  string
	Count int
	More  bool // there may be more
}

// showWorkflowPartitions lists the partitions in one state: without one asked for, the first
// in which there are any.
func (s *Site) showWorkflowPartitions(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showTab(w, r, v, "partitions", " · partitions", func(h *workflowHead) (any, error) {
		out := partitionsPage{Head: h, State: r.URL.Query().Get("state")}
		if c := h.Partitions; c != nil {
			for _, of := range []partitionState{{Name: "attention", Word: "Need attention", Count: c.Attention}, {Name: "held", Word: "Held up", Count: c.Held}, {Name: "working", Word: "At work", Count: c.Working}, {Name: "waiting", Word: "Wait for a place", Count: c.Waiting}} {
				of.More = of.Count >= mostPartitions
				if out.States = append(out.States, of); out.State == "" && of.Count > 0 {
					out.State = of.Name
				}
			}
		}
		out.State = cmp.Or(out.State, "attention")
		query := listQuery(r, inputsPerPage)
		query.Set("state", out.State)
		var list client.Page[client.Partition]
		err := s.ask(r.Context(), v, apiWorkflow(r, "/partitions"), query, &list)
		out.Partitions, out.Pager = list.Items, pagerOf(r, list.NextCursor)
		return out, err
	})
}

type whyPage struct {
	Head  *workflowHead
	Why   client.LaneWhy
	Rules []client.ApprovalRule // what it may call without asking
}

func (s *Site) showWorkflowWhy(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showTab(w, r, v, "why", " · why", func(h *workflowHead) (any, error) {
		out := whyPage{Head: h}
		var rules client.Page[client.ApprovalRule]
		if err := s.ask(r.Context(), v, apiWorkflow(r, "/approvals/rules"), url.Values{"limit": {"500"}}, &rules); err != nil {
			return nil, err
		}
		out.Rules = rules.Items
		return &out, s.ask(r.Context(), v, "/api/v1/lanes/workflow/"+segment(r, "name")+"/why", nil, &out.Why)
	})
}

// revokeRule makes a workflow ask again before it calls a method.
func (s *Site) revokeRule(w http.ResponseWriter, r *http.Request, v *visit) {
	s.changeBy(w, r, v, http.MethodDelete, apiWorkflow(r, "/approvals/rules/"+segment(r, "tool")+"/"+segment(r, "method")), nil, "Revoked. The workflow asks again before this call.")
}

func (s *Site) runWorkflow(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiWorkflow(r, "/run"), nil, "Run requested.")
}

func (s *Site) pauseWorkflow(w http.ResponseWriter, r *http.Request, v *visit) {
	s.pause(w, r, v, apiWorkflow(r, "/pause"), "Paused. Nothing more will start.")
}

func (s *Site) resumeWorkflow(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiWorkflow(r, "/resume"), nil, "Resumed.")
}

func (s *Site) skipInput(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, "/api/v1/inputs/"+segment(r, "id")+"/skip", nil, "Skipped.")
}
