package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// guarded is a job that wants to call a private address. The demo's server was
// told to allow 127.0.0.1 alone, so the call is refused before it is made.
func guarded() scene {
	return scene{name: "guarded", promise: "private addresses are blocked unless allowed", play: playGuarded}
}

func playGuarded(ctx context.Context, s *stage) (string, error) {
	j, err := s.ask(ctx, "a call into the private network", client.JobRequest{
		Task: "http", Payload: json.RawMessage(`{"url":"http://10.0.0.1/secrets"}`),
		RunAt: pawl.FormatTime(time.Now().Add(3200 * time.Millisecond)),
	})
	if err != nil {
		return "", err
	}
	h, err := s.end(ctx, j.ID)
	if err != nil {
		return "", err
	}
	if h.what != failed {
		return "", fmt.Errorf("the call %s instead of being refused", h.what)
	}
	return "a call to 10.0.0.1 was blocked immediately and not retried", nil
}
