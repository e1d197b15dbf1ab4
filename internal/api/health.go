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
		a.tellReadiness(name, err)
		if err == nil {
			return
		}
		out.Status, out.Body.Status = http.StatusServiceUnavailable, wordUnavailable
		out.Body.Checks[name] = publicWords(err)
	}
	answers := a.db.Ping(ctx)
	check("database", answers)
	check("queue", a.queue.Health())
	if last, on, err := a.queue.Canary(); on && answers == nil {
		check("canary", err)
		if !last.Ended.IsZero() {
			out.Body.Canary = &client.ReadinessCanary{EndedAt: client.At(last.Ended), Milliseconds: float64(last.Took.Microseconds()) / 1000}
		}
	}
	if a.cfg.Ready != nil {
		check("server", a.cfg.Ready(ctx))
	}
	if h, err := a.latestHalt(ctx); err == nil && h.Active() { // without an answer it is not ready anyway
		out.Body.Halted = &client.ReadinessHalt{Since: client.At(h.Since)}
	}
	return out, nil
}

// tellReadiness tells the log when a check begins to fail, fails otherwise, or is well
// again, and not at every probe.
func (a *API) tellReadiness(name string, err error) {
	text := ""
	if err != nil {
		text = publicWords(err)
	}
	a.unready.mu.Lock()
	defer a.unready.mu.Unlock()
	was := a.unready.checks[name]
	switch {
	case text == was || text != "" && was != "" && name == "canary": // which says for how long
	case text == "":
		a.log.Info("ready again", "check", name)
	default:
		a.log.Warn("not ready", "check", name, "err", err)
	}
	if a.unready.checks == nil {
		a.unready.checks = map[string]string{}
	}
	a.unready.checks[name] = text
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
