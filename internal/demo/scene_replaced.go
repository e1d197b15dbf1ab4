package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// replaced is a job with a key that is asked for again before it is due: only
// the last version runs.
func replaced() scene {
	return scene{name: "replaced", promise: "a job with the same key replaces the pending one", play: playReplaced}
}

func playReplaced(ctx context.Context, s *stage) (string, error) {
	const versions = 4
	key, path := "reminder", "/reminder"
	var last client.Job
	for v := 1; v <= versions; v++ {
		name := fmt.Sprintf("reminder, version %d", v)
		j, err := s.order(ctx, name, path, map[string]any{"version": v},
			client.JobRequest{Key: key, KeyMode: "replace", RunAt: pawl.FormatTime(time.Now().Add(4 * time.Second))})
		if err != nil {
			return "", err
		}
		last = j
		s.story.note("asked for", name+", replacing any that is pending")
		if err := pause(ctx, 600*time.Millisecond); err != nil {
			return "", err
		}
	}
	if _, err := s.success(ctx, last.ID); err != nil {
		return "", err
	}
	visits := s.desk.seen(path)
	if err := checkVisits(visits, 1); err != nil {
		return "", err
	}
	if !strings.Contains(visits[0].body, fmt.Sprintf(`"version":%d`, versions)) {
		return "", fmt.Errorf("the desk got %s instead of version %d", visits[0].body, versions)
	}
	return fmt.Sprintf("enqueued %d times, ran once, with version %d", versions, versions), nil
}

// pause waits, unless the demo ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, errEnded) {
			return cause
		}
		return errEnded
	}
}
