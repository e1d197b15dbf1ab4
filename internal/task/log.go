package task

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"

	"github.com/pawlrun/pawl/internal/queue"
)

// Log is the task that writes its payload to the log, as one line.
func Log(log *slog.Logger) queue.Task {
	return queue.Task{
		Run: func(ctx context.Context, j *queue.Job) error {
			var line struct {
				Message string `json:"message"`
			}
			said := string(j.Payload)
			if json.Unmarshal(j.Payload, &line) == nil && line.Message != "" {
				said = line.Message
			}
			log.InfoContext(ctx, "a job says", "message", said, "job", strconv.FormatInt(j.ID, 10), "late", j.StartedAt.Sub(j.RunAt))
			return nil
		},
		MaxAttempts: 3,
		Record:      true,
	}
}
