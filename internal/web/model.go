package web

import (
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/workflow"
)

// runView is a run with what pages ask about it. In lists the fields of a single
// run are empty.
type runView struct{ client.RunDetail }

// LaneHref is the page of what it is a run of.
func (r runView) LaneHref() string { return lanePath(r.Kind, r.laneKey()) }

// Follows is what a page about the run follows, see Pulse.
func (r runView) Follows() string {
	return r.Kind + ":" + r.laneKey()
}

// laneKey names the lane of the run: by its id where names are their owners'.
func (r runView) laneKey() string {
	if r.LaneID != "" {
		return string(r.LaneID)
	}
	return r.Lane
}

// PlainOutput is what the command, URL or job of the run left behind; nil if it ran
// something else.
func (r runView) PlainOutput() *client.PlainOutput {
	if r.Slot == nil {
		return nil
	}
	return r.Slot.Output
}

// Questions reports whether a graph waits for an answer.
func (r runView) Questions() bool {
	return r.Question != nil && isOpen(r.Question) && r.Can("approve")
}

// Seen is what a decision about the run is bound to: the question that it is
// about. Without one it is that the run only waits.
func (r runView) Seen() string {
	switch {
	case r.Question != nil:
		return pawl.FormatTime(r.Question.AskedAt.Time)
	case isOfSchedule(r.Kind):
		return ""
	case r.Approval != nil && r.Status == string(pawl.StatusPausedApproval) && (r.Error == nil || r.Error.Class == ""):
		return r.Approval.ID // without an error it waits for this, and not for an account
	}
	return workflow.SeenNothing
}

// Decision names what a person is to decide, and is empty if there is nothing:
// pages hold still while somebody is about to, and take something else in its
// place for a shift.
func (r runView) Decision() string {
	if !r.Can("approve") && !r.Can("reject") && !r.Can("resume") && r.Outcomes() == nil {
		return ""
	}
	return r.ID + " " + r.Status + " " + r.Seen()
}

// Can reports whether an action would be accepted.
func (r runView) Can(action string) bool {
	for _, a := range r.Actions {
		if a.Name == action {
			return true
		}
	}
	return false
}

// Outcomes are what can be said about a call.
func (r runView) Outcomes() []string {
	for _, a := range r.Actions {
		if a.Name == "resolve" {
			return a.Outcomes
		}
	}
	return nil
}

// Asks reports whether the run waits for an answer to its question.
func (r runView) Asks() bool { return r.Approval != nil && r.Approval.State == "pending" }

// callName is what the script calls a call, or else the method.
func callName(call any) string {
	var title client.NullString
	var tool, method string
	switch c := call.(type) {
	case client.Output:
		title, tool, method = c.Title, c.Tool, c.Method
	case client.RunMutation:
		title, tool, method = c.Title, c.Tool, c.Method
	case *client.RunMutation:
		return callName(*c)
	}
	if title != "" {
		return string(title)
	}
	return tool + "." + method
}

// callError is why a call did not work; outputs have none.
func callError(call any) *client.RunError {
	if c, ok := call.(client.RunMutation); ok {
		return c.Error
	}
	return nil
}

// callState is a state as something to be shown: of a call that failed it is
// known that it did not happen.
func callState(state string) string {
	if state == "failed" {
		return "did not happen"
	}
	return state
}
