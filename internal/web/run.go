package web

import (
	"encoding/json"
	"net/http"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/workflow"
)

type runsPage struct {
	Runs               []runView
	Kind, Lane, Status string
	Kinds, Statuses    []string
	Pager              pager
}

// statuses are the choices of a filter.
func statuses() []string {
	var out []string
	for _, s := range pawl.Statuses() {
		out = append(out, string(s))
	}
	return out
}

func (s *Site) showRuns(w http.ResponseWriter, r *http.Request, v *visit) {
	query := listQuery(r, runsPerPage, "kind", "lane", "status")
	var list client.Page[runView]
	if err := s.ask(r.Context(), v, "/api/v1/runs", query, &list); err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "runs", "Runs")
	f.Live = everyLane
	s.show(w, r, "runs.html", f, runsPage{
		Runs: list.Items, Kind: query.Get("kind"), Lane: query.Get("lane"), Status: query.Get("status"),
		Kinds: s.kinds(), Statuses: statuses(), Pager: pagerOf(r, list.NextCursor),
	})
}

type runPage struct {
	Run      runView
	CanWrite bool
	Steps    []phaseStep
}

// phaseStep is one phase of a run's way.
type phaseStep struct {
	Name  string
	State string // past, here, stopped or ahead
	Tone  string // of what stopped there
}

// showRun is the view for whoever wants to know exactly: here are phases,
// handlers and the chain of retries.
func (s *Site) showRun(w http.ResponseWriter, r *http.Request, v *visit) {
	var one runView
	if err := s.ask(r.Context(), v, "/api/v1/runs/"+segment(r, "id"), nil, &one); err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "runs", "Run of "+one.Lane)
	f.Live = one.Follows()
	body := runPage{Run: one, CanWrite: v.may("runs", "write"), Steps: steps(one.HandlerType, one.Phase, one.Status)}
	s.show(w, r, "run.html", f, body)
}

// steps is the way of a run of this type, and how far it came. One that does not
// go on stopped at its phase.
func steps(handlerType, phase, status string) (out []phaseStep) {
	state, tone, here := "past", tone(status), "here"
	if status != string(pawl.StatusActive) {
		here = "stopped"
	}
	for _, p := range pawl.Phases(pawl.HandlerType(handlerType)) {
		name := string(p)
		switch {
		case name == phase && p == pawl.PhaseCommitted:
			state = "past"
		case name == phase:
			state = here
		case state == here:
			state = "ahead"
		}
		out = append(out, phaseStep{name, state, tone})
	}
	return out
}

func apiRun(r *http.Request, action string) string {
	return "/api/v1/runs/" + segment(r, "id") + "/" + action
}

// approveRun approves what the page showed and nothing else: the hash names it.
func (s *Site) approveRun(w http.ResponseWriter, r *http.Request, v *visit) {
	body := map[string]any{"seen": seenIn(r)}
	if answer := answerOf(r); answer != nil {
		body["answer"] = answer
	}
	if hash := r.FormValue("hash"); hash != "" {
		body["hash"] = hash
	}
	done := "Approved."
	if r.FormValue("always") != "" {
		body["always"] = true
		done = "Approved. The workflow no longer asks before this call."
	}
	s.change(w, r, v, apiRun(r, "approve"), body, done)
}

// seenIn is the question that a form was made for. One that does not say so was
// made for none.
func seenIn(r *http.Request) string {
	if seen := r.FormValue("seen"); seen != "" {
		return seen
	}
	return workflow.SeenNothing
}

// answerOf is what a person answered a graph: JSON if it is, or else the text
// itself. Nothing is nil, which the API takes for yes.
func answerOf(r *http.Request) json.RawMessage {
	text := strings.TrimSpace(r.FormValue("answer"))
	if text == "" {
		return nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // text always works
	return quoted
}

func (s *Site) rejectRun(w http.ResponseWriter, r *http.Request, v *visit) {
	done := "Rejected. The workflow is paused."
	if isOfSchedule(r.FormValue("kind")) {
		done = "Rejected. The slot has ended."
	}
	s.change(w, r, v, apiRun(r, "reject"), map[string]any{"seen": seenIn(r)}, done)
}

func (s *Site) resumeRun(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiRun(r, "resume"), nil, "Retrying now.")
}

func (s *Site) cancelRun(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiRun(r, "cancel"), nil, "Cancelled.")
}

// resolveRun says what became of a call.
func (s *Site) resolveRun(w http.ResponseWriter, r *http.Request, v *visit) {
	body := map[string]any{"outcome": r.FormValue("outcome")}
	if text := strings.TrimSpace(r.FormValue("result")); text != "" && r.FormValue("outcome") == "happened" {
		if !json.Valid([]byte(text)) {
			s.refused(w, r, &pawl.Error{Code: pawl.CodeInvalid, Msg: "the result is not JSON", Hint: `Write text in quotes, such as "sent", or leave it empty.`})
			return
		}
		body["result"] = json.RawMessage(text)
	}
	s.change(w, r, v, apiRun(r, "resolve"), body, "Recorded.")
}
