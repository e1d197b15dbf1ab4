package workflow

import (
	"context"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// A version that auto-fix made is confined: it may call the methods of
// connections that versions deployed by people have named or called, or that a
// person granted, and nothing else. The host holds it to that when it calls,
// whatever its text looks like. A person who deploys it frees it.

// codeNotGranted is the code of a call that a confined version may not make.
const codeNotGranted = "not_granted"

// rights are what a confined version may call.
type rights map[repair.Call]bool

func rightsOf(list []workflowstore.Right) rights {
	out := rights{}
	for _, r := range list {
		out[repair.Call{Tool: r.Tool, Method: r.Method}] = true
	}
	return out
}

// check refuses a call that is none of the rights.
func (r rights) check(connection, method string) error {
	if r == nil || r[repair.Call{Tool: connection, Method: method}] {
		return nil
	}
	return &failure{class: pawl.ClassPermission, code: codeNotGranted, text: fmt.Sprintf(
		"this script was made by auto-fix and may not call %s.%s: no version that a person deployed does (approve the run to let the workflow call it from now on, or deploy a version yourself)", connection, method)}
}

// rightsFor reads what a version may call; nil is everything, because a person
// deployed it.
func (s *Service) rightsFor(ctx context.Context, tx *store.Tx, workflowID, version string) (rights, error) {
	if s.configs.free(workflowID, version) {
		return nil, nil //nolint:nilnil // it is not confined
	}
	v, err := workflowstore.In(tx).GetWorkflowVersion(ctx, workflowID, version)
	if err != nil || !v.Confined {
		return nil, err
	}
	list, err := workflowstore.In(tx).WorkflowRights(ctx, workflowID)
	return rightsOf(list), err
}

// checkRight refuses a call of a confined version that is none of its rights,
// and notes it, so that a person can grant it.
func (x *execution) checkRight(connection, method string) error {
	if err := x.rights.check(connection, method); err != nil {
		x.trace.calls(workflowstore.Right{Tool: connection, Method: method, How: workflowstore.RightAsked, Subject: x.run.ID})
		return err
	}
	return nil
}

// used notes a call of a version that a person deployed, once in this process.
func (x *execution) used(connection, method string) {
	if x.rights != nil || x.knownRight(connection, method) {
		return
	}
	x.trace.calls(workflowstore.Right{Tool: connection, Method: method, How: workflowstore.RightUsed, Subject: x.run.ScriptVersion})
}

func (x *execution) knownRight(connection, method string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rightsSeen[x.id][repair.Call{Tool: connection, Method: method}]
}

// rightsKept remembers what is stored as used.
func (s *Service) rightsKept(workflowID string, list []workflowstore.Right) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rightsSeen[workflowID] == nil {
		s.rightsSeen[workflowID] = rights{}
	}
	for _, r := range list {
		if r.How == workflowstore.RightUsed {
			s.rightsSeen[workflowID][repair.Call{Tool: r.Tool, Method: r.Method}] = true
		}
	}
}

// declared are the rights that a person gives by deploying a script.
func declared(version, javascript string) []workflowstore.Right {
	var out []workflowstore.Right
	for _, c := range repair.CallsOf(javascript) {
		out = append(out, workflowstore.Right{Tool: c.Tool, Method: c.Method, How: workflowstore.RightDeclared, Subject: version})
	}
	return out
}
