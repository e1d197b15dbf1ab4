package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/examples"
	"github.com/pawlrun/pawl/internal/run"
)

// largeOrdersName is the workflow of examples/orders that asks.
const largeOrdersName = "large-orders"

// approval is an order that a person must see before it is sent. Here the demo
// is the person.
func approval() scene {
	return scene{name: "approval", promise: "a call that needs approval waits for it", play: playApproval}
}

func playApproval(ctx context.Context, s *stage) (string, error) {
	wish := s.desk.book.make(large, "a grand piano", false)
	if err := s.deploy(ctx, examples.Orders, "orders/large-orders.workflow.ts", largeOrdersName); err != nil {
		return "", err
	}
	asked, err := s.awaitQuestion(ctx, wish)
	if err != nil {
		return "", err
	}
	lane, err := read[client.WorkflowSummary](ctx, s, client.WorkflowPath(largeOrdersName))
	if err != nil {
		return "", s.ended(ctx, err)
	}
	if lane.Status != string(run.NeedsAttention) {
		return "", fmt.Errorf("the workflow that asks is shown as %q", lane.Status)
	}
	if orders, posts := s.desk.book.placed(wish); len(orders) > 0 || posts > 0 {
		return "", errors.New("it was ordered before anybody approved it")
	}
	s.story.note("needs approval", string(asked.Title)+"; not sent to the desk yet")
	if err := s.approve(ctx, asked); err != nil {
		return "", err
	}
	s.story.note("approved", string(asked.Title)+", by the demo itself")
	if _, err := s.orderOf(ctx, largeOrdersName, wish); err != nil {
		return "", err
	}
	return "a grand piano was ordered only after approval", nil
}

// awaitQuestion waits until the order for a wish is asked for. What an earlier
// start left unanswered stands before it, and is approved.
func (s *stage) awaitQuestion(ctx context.Context, wish string) (asked client.Approval, err error) {
	err = s.await(ctx, "the order is asked for", func() (bool, error) {
		questions, err := s.questions(ctx)
		if err != nil {
			return false, err
		}
		for _, q := range questions {
			if about(q.Arguments, wish) {
				asked = q
				return true, nil
			}
			if err := s.approve(ctx, q); err != nil && !errors.Is(err, pawl.ErrConflict) {
				return false, err
			}
		}
		return false, nil
	})
	return asked, err
}

// questions are what the workflow of large orders waits for, the oldest first.
func (s *stage) questions(ctx context.Context) ([]client.Approval, error) {
	questions, err := list[client.Approval](ctx, s, client.ApprovalsPath, url.Values{"workflow": {largeOrdersName}})
	slices.Reverse(questions)
	return questions, err
}

func (s *stage) approve(ctx context.Context, q client.Approval) error {
	_, err := s.api.Post(ctx, client.RunsPath+"/"+url.PathEscape(q.RunID)+"/approve", map[string]string{"hash": q.Hash})
	if err != nil {
		return s.ended(ctx, fmt.Errorf("approve %s: %w", q.Title, err))
	}
	return nil
}
