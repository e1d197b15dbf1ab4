package web

import (
	"errors"
	"net/http"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

type approvalsPage struct {
	Waiting  []waitingItem // the oldest first
	State    string
	States   []string
	CanWrite bool
	Pager    pager
}

// waitingItem is a call that is to be approved or a question of a graph.
type waitingItem struct {
	At       time.Time
	Approval *client.Approval
	Question *runView
}

const approvalsPerPage = 25

func (s *Site) showApprovals(w http.ResponseWriter, r *http.Request, v *visit) {
	query := listQuery(r, approvalsPerPage, "state")
	if query.Get("state") == "" || query.Get("state") == "pending" {
		query.Set("order", "oldest") // what comes is added below, and moves nothing that somebody reads
	}
	var list client.Page[client.Approval]
	if err := s.ask(r.Context(), v, "/api/v1/approvals", query, &list); err != nil {
		s.problem(w, r, err)
		return
	}
	state := query.Get("state")
	if state == "" {
		state = "pending"
	}
	var questions []runView
	if state == "pending" && query.Get("cursor") == "" {
		var err error
		if questions, err = s.questions(r, v); err != nil {
			s.problem(w, r, err)
			return
		}
	}
	f := s.frameFor(r, v, "approvals", "Approvals")
	f.Live = everyLane
	s.show(w, r, "approvals.html", f, approvalsPage{
		Waiting: waitingItems(list.Items, questions), State: state, States: []string{"pending", "approved", "used", "rejected", "expired"},
		CanWrite: v.may("runs", "write"), Pager: pagerOf(r, list.NextCursor),
	})
}

// waitingItems puts approvals and questions of graphs in the order in which they
// were asked. Without questions the list stays as it is.
func waitingItems(approvals []client.Approval, questions []runView) []waitingItem {
	var out []waitingItem
	for i := range approvals {
		out = append(out, waitingItem{At: approvals[i].CreatedAt.Time, Approval: &approvals[i]})
	}
	for i := range questions {
		out = append(out, waitingItem{At: questions[i].Question.AskedAt.Time, Question: &questions[i]})
	}
	if len(questions) > 0 {
		slices.SortStableFunc(out, func(a, b waitingItem) int { return a.At.Compare(b.At) })
	}
	return out
}

// questions reads what graphs ask, the newest first.
func (s *Site) questions(r *http.Request, v *visit) ([]runView, error) {
	if !s.hasSchedules() {
		return nil, nil
	}
	var list client.Page[runView]
	if err := s.ask(r.Context(), v, "/api/v1/runs", waitingGraphs(approvalsPerPage), &list); err != nil {
		return nil, err
	}
	var out []runView
	for _, one := range list.Items {
		var whole runView
		err := s.ask(r.Context(), v, "/api/v1/runs/"+one.ID, nil, &whole)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
		case err != nil:
			return nil, err
		case whole.Questions():
			out = append(out, whole)
		}
	}
	return out, nil
}
