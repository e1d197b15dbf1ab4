package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// healed is a job that fails twice. It is tried again after longer and longer
// pauses until it succeeds.
func healed() scene {
	return scene{name: "healed", promise: "a failed job is retried with increasing delays", play: playHealed}
}

func playHealed(ctx context.Context, s *stage) (string, error) {
	path := "/invoice"
	s.desk.plan(path, reply{status: http.StatusServiceUnavailable}, reply{status: http.StatusInternalServerError})
	j, err := s.order(ctx, "invoice", path, map[string]any{"invoice": 1},
		client.JobRequest{RunAt: pawl.FormatTime(time.Now().Add(2500 * time.Millisecond)), MaxAttempts: 5})
	if err != nil {
		return "", err
	}
	if _, err := s.success(ctx, j.ID); err != nil {
		return "", err
	}
	visits := s.desk.seen(path)
	if err := checkVisits(visits, 3); err != nil {
		return "", err
	}
	first, second := visits[1].from.Sub(visits[0].to), visits[2].from.Sub(visits[1].to)
	if second <= first {
		return "", fmt.Errorf("the second pause of %s is not longer than the first of %s", second, first)
	}
	return fmt.Sprintf("failed twice, succeeded after delays of %s and %s", seconds(first), seconds(second)), nil
}
