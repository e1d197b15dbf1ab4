package demo

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// latest is how late a job may be before the promise counts as broken. Pawl
// is about a millisecond late; a busy machine may add to that.
const latest = time.Second

// onTime is a row of timers: each goes off when it should, and never before.
func onTime() scene {
	return scene{name: "on time", promise: "a timer fires on time, never early", play: playOnTime}
}

func playOnTime(ctx context.Context, s *stage) (string, error) {
	const timers = 6
	first := time.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond)
	var ids []string
	for i := range timers {
		at := first.Add(time.Duration(i) * 1700 * time.Millisecond)
		name := fmt.Sprintf("timer %d for %s", i+1, at.Local().Format(clock))
		j, err := s.ask(ctx, name, client.JobRequest{Task: "log", Payload: payloadOf(map[string]any{"message": name}), RunAt: pawl.FormatTime(at)})
		if err != nil {
			return "", err
		}
		ids = append(ids, j.ID)
	}
	var worst time.Duration
	for _, id := range ids {
		h, err := s.success(ctx, id)
		if err != nil {
			return "", err
		}
		if h.late() < 0 {
			return "", fmt.Errorf("job %s started %s before its time", id, -h.late())
		}
		worst = max(worst, h.late())
	}
	if worst > latest {
		return "", fmt.Errorf("a timer was %s late", worst)
	}
	return fmt.Sprintf("%d timers, the latest %s after its time", timers, millis(worst)), nil
}
