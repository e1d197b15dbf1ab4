package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

const (
	checkTimeout = 2 * time.Second

	wordOK          = "ok"
	wordUnavailable = "unavailable"
)

func (a *API) getHealth(context.Context, *struct{}) (*output[client.Health], error) {
	return &output[client.Health]{client.Health{Status: wordOK}}, nil
}

type readinessOutput struct {
	Status int
	Body   client.Readiness
}

func (a *API) getReadiness(ctx context.Context, _ *struct{}) (*readinessOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	out := &readinessOutput{Status: http.StatusOK, Body: client.Readiness{Status: wordOK, Checks: map[string]string{}}}
	check := func(name string, err error) {
		out.Body.Checks[name] = wordOK
		if err == nil {
			return
		}
		a.log.Warn("not ready", "check", name, "err", err)
		out.Status, out.Body.Status = http.StatusServiceUnavailable, wordUnavailable
		out.Body.Checks[name] = publicWords(err)
	}
	check("database", a.db.Ping(ctx))
	check("queue", a.queue.Health())
	if a.cfg.Ready != nil {
		check("server", a.cfg.Ready(ctx))
	}
	return out, nil
}

// publicWords is what anybody may read of an error: what a driver says can have
// names of hosts and users.
func publicWords(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Msg
	}
	if err.Error() == "starting" { // the queue's own word
		return "starting"
	}
	return wordUnavailable
}
