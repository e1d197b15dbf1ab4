package schedule

import (
	"cmp"
	"context"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// Uncovered are the slots of a plan with one graph, which the grant did not allow
// when the plan was made. They would be passed over.
type Uncovered struct {
	GraphID string             `json:"graphId"`
	Slots   int                `json:"slots"`
	Code    contract.ErrorCode `json:"code"`
	Message string             `json:"message"`
}

// lost is how many slots of a plan would be passed over because of the grant.
func (p Plan) lost() (n int) {
	for _, u := range p.Uncovered {
		n += u.Slots
	}
	return n
}

// findUncovered notes which slots of a plan its grant does not allow, so that a
// person knows before they confirm it. The usual reason: the schedule ran another
// graph then, and its grant was made for the one of now.
func (s *Service) findUncovered(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, plan *Plan) error {
	if plan.GrantID != "" {
		if err := s.usableGrant(ctx, tx, sch, plan.GrantID); err != nil {
			return err
		}
	}
	var graphs []string // in the order of the plan
	slots := map[string]int{}
	for _, slot := range plan.Slots {
		if work.Is(slot.GraphID) {
			continue // commands, URLs and jobs need no grant
		}
		if slots[slot.GraphID]++; slots[slot.GraphID] == 1 {
			graphs = append(graphs, slot.GraphID)
		}
	}
	for _, graphID := range graphs {
		_, err := grant.Authorize(ctx, tx, cmp.Or(plan.GrantID, sch.GrantID), graphID)
		code, refused := grant.RefusalCode(err)
		switch {
		case refused:
			plan.Uncovered = append(plan.Uncovered, Uncovered{GraphID: graphID, Slots: slots[graphID], Code: code, Message: messageOf(err)})
		case err != nil:
			return err
		}
	}
	return nil
}

// usableGrant refuses a grant that a person named for a backfill and that is not
// the owner's, or over. Which graphs it allows is told in the plan.
func (s *Service) usableGrant(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, id string) error {
	g, err := s.cfg.Grants.Get(ctx, tx, sch.OwnerUserID, id)
	if err == nil {
		err = grant.Check(g, sch.GraphID, tx.Now)
	}
	code, refused := grant.RefusalCode(err)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		code = contract.GrantNotFound
	case refused && (code == contract.GrantExpired || code == contract.GrantRevoked):
	case refused:
		return nil
	default:
		return err
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: string(code), Op: "plan backfill", Msg: messageOf(err), Hint: "Leave it out to use the grant of the schedule.",
		Fields: []pawl.Field{{Pointer: "/grantId", Message: messageOf(err)}},
	}
}
