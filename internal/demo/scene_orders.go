package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// orders are calls of an upstream that is mostly well: one call meets a fault
// and is repeated, one is slow, and every order arrives.
func orders() scene {
	return scene{name: "orders", promise: "every call arrives; failed ones are retried", play: playOrders}
}

func playOrders(ctx context.Context, s *stage) (string, error) {
	const count, faulty, slow = 8, 3, 5
	s.desk.plan(fmt.Sprintf("/calls/%d", faulty), reply{status: http.StatusInternalServerError})
	s.desk.plan(fmt.Sprintf("/calls/%d", slow), reply{status: http.StatusOK, after: 900 * time.Millisecond})
	start := time.Now().Add(time.Second).Truncate(time.Millisecond)
	var ids []string
	for n := 1; n <= count; n++ {
		j, err := s.order(ctx, fmt.Sprintf("order %d", n), fmt.Sprintf("/calls/%d", n), map[string]any{"order": n},
			client.JobRequest{RunAt: pawl.FormatTime(start.Add(time.Duration(n) * 900 * time.Millisecond))})
		if err != nil {
			return "", err
		}
		ids = append(ids, j.ID)
	}
	for i, id := range ids {
		if _, err := s.success(ctx, id); err != nil {
			return "", err
		}
		want := 1
		if i+1 == faulty {
			want = 2
		}
		if err := checkVisits(s.desk.seen(fmt.Sprintf("/calls/%d", i+1)), want); err != nil {
			return "", fmt.Errorf("order %d: %w", i+1, err)
		}
	}
	return fmt.Sprintf("%d orders arrived, order %d after an error at the desk", count, faulty), nil
}

// checkVisits tells whether there were as many requests as expected, all with
// the same Idempotency-Key.
func checkVisits(visits []visit, want int) error {
	if len(visits) != want {
		return fmt.Errorf("the desk was called %d times instead of %d", len(visits), want)
	}
	for _, v := range visits {
		if v.key == "" || v.key != visits[0].key {
			return fmt.Errorf("the Idempotency-Key is %q, after %q", v.key, visits[0].key)
		}
	}
	return nil
}
