package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// oneAtATime is a lane: its jobs are due at the same instant, and run one
// after the other in the order in which they were asked for.
func oneAtATime() scene {
	return scene{name: "one at a time", promise: "jobs in a lane run one at a time, in order", play: playOneAtATime}
}

func playOneAtATime(ctx context.Context, s *stage) (string, error) {
	const count = 5
	at := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	var ids []string
	for n := 1; n <= count; n++ {
		path := fmt.Sprintf("/till/%d", n)
		s.desk.plan(path, reply{status: http.StatusOK, after: 400 * time.Millisecond})
		j, err := s.order(ctx, fmt.Sprintf("customer %d at the till", n), path, map[string]any{"customer": n}, client.JobRequest{RunAt: pawl.FormatTime(at), Lane: "till"})
		if err != nil {
			return "", err
		}
		ids = append(ids, j.ID)
	}
	var before visit
	for i, id := range ids {
		if _, err := s.success(ctx, id); err != nil {
			return "", err
		}
		visits := s.desk.seen(fmt.Sprintf("/till/%d", i+1))
		if err := checkVisits(visits, 1); err != nil {
			return "", fmt.Errorf("customer %d: %w", i+1, err)
		}
		if visits[0].from.Before(before.to) {
			return "", fmt.Errorf("customer %d came %s before the one in front was served", i+1, before.to.Sub(visits[0].from))
		}
		before = visits[0]
	}
	return fmt.Sprintf("%d customers at one till, one at a time", count), nil
}
