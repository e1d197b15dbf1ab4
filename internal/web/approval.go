package web

import "net/http"

type approvalsPage struct {
	Approvals []approvalAnswer
	State     string
	States    []string
	CanWrite  bool
	Pager     pager
}

const approvalsPerPage = 25

func (s *Site) showApprovals(w http.ResponseWriter, r *http.Request, v *visit) {
	query := listQuery(r, approvalsPerPage, "state")
	var list page[approvalAnswer]
	if err := s.ask(r.Context(), v, "/api/v1/approvals", query, &list); err != nil {
		s.problem(w, r, err)
		return
	}
	state := query.Get("state")
	if state == "" {
		state = "pending"
	}
	f := s.frameFor(r, v, "approvals", "Approvals")
	f.Live = everyLane
	s.show(w, r, "approvals.html", f, approvalsPage{
		Approvals: list.Items, State: state, States: []string{"pending", "approved", "used", "rejected", "expired"},
		CanWrite: v.may("runs", "write"), Pager: pagerOf(r, list.NextCursor),
	})
}
