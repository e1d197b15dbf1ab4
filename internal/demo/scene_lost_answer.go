package demo

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/examples"
)

// ordersName is the workflow of examples/orders that does not ask.
const ordersName = "orders"

// lostAnswer is an order that the desk takes and whose answer gets lost. Nobody
// knows what became of it until the desk is asked by its key.
func lostAnswer() scene {
	return scene{name: "lost answer", promise: "an order whose response is lost is looked up, not sent twice", play: playLostAnswer}
}

func playLostAnswer(ctx context.Context, s *stage) (string, error) {
	lost := s.desk.book.make(small, "a lamp", true)
	wishes := []string{s.desk.book.make(small, "a chair", false), lost, s.desk.book.make(small, "a clock", false)}
	if err := s.deploy(ctx, examples.Orders, "orders/orders.workflow.ts", ordersName); err != nil {
		return "", err
	}
	for _, id := range wishes {
		by, err := s.orderOf(ctx, ordersName, id)
		if err != nil {
			return "", err
		}
		if id == lost && by != "reconcile" {
			return "", fmt.Errorf("the lost order is known by its %s", by)
		}
	}
	return fmt.Sprintf("%d orders placed, each once; one was confirmed by asking the desk", len(wishes)), nil
}

// orderOf waits until the order for a wish is placed and its run has ended, and
// says who knew what became of it.
func (s *stage) orderOf(ctx context.Context, workflow, wish string) (by string, err error) {
	query := url.Values{"kind": {string(pawl.KindWorkflow)}, "lane": {workflow}, "status": {string(pawl.StatusCommitted)}}
	var call *client.RunMutation
	err = s.await(ctx, "the order for "+wish+" is placed", func() (bool, error) {
		runs, err := list[client.RunDetail](ctx, s, client.RunsPath, query)
		i := slices.IndexFunc(runs, func(r client.RunDetail) bool { return r.Mutation != nil && about(r.Mutation.Arguments, wish) })
		if err != nil || i < 0 {
			return false, err
		}
		call = runs[i].Mutation
		return true, nil
	})
	if err != nil {
		return "", err
	}
	if orders, posts := s.desk.book.placed(wish); len(orders) != 1 || posts != 1 {
		return "", fmt.Errorf("%d orders for %s, asked for %d times", len(orders), wish, posts)
	}
	return string(call.ResolvedBy), nil
}

// about reports whether arguments name a wish.
func about(arguments []byte, wish string) bool {
	return strings.Contains(string(arguments), `"`+wish+`"`)
}
