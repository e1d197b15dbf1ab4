package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

const (
	// heartbeat keeps proxies from taking a silent stream for a dead one.
	heartbeat = 15 * time.Second

	// writeTimeout is how long a follower may refuse to read.
	writeTimeout = 30 * time.Second
)

type streamInput struct {
	Kind   string `query:"kind" example:"job" doc:"Only events of these kinds, separated by commas: job, run, workflow, source, schedule. Events of schedules and jobs are sent only to their owner and to admins."`
	ID     string `query:"id" doc:"Only events about the thing with this id."`
	LastID string `header:"Last-Event-ID" doc:"The number of the last event that was seen: go on after it."`
}

// streamOutput writes the stream itself.
type streamOutput struct {
	Body func(huma.Context)
}

// stream sends what happens until the client leaves, the process stops or the
// token ends. What schedules and jobs do is told to their owners and to admins
// only.
func (a *API) stream(ctx context.Context, in *streamInput) (*streamOutput, error) {
	var kinds []string
	for kind := range strings.SplitSeq(in.Kind, ",") {
		if kind = strings.TrimSpace(kind); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	after, err := strconv.ParseInt(in.LastID, 10, 64)
	if err != nil || after < 0 {
		after = 0
		if in.LastID != "" {
			return nil, invalid("Leave it out to begin with what happens next.", client.Fault{Pointer: "/Last-Event-ID", Message: "is not the number of an event"})
		}
	}
	caller := callOf(ctx).token
	place, err := a.keeper.Open(caller) //nolint:contextcheck // what watches the tokens outlives any one stream
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		p := newProblem(http.StatusTooManyRequests, e.Reason, e.Msg, e.Hint)
		p.header.Set("Retry-After", "5")
		return nil, p
	}
	to, ok := a.feed.follow(a.sightFor(caller), kinds, in.ID, after)
	if !ok {
		place.Close()
		return nil, &pawl.Error{Code: pawl.CodeUnavailable, Msg: "this server stops, and takes no more streams"}
	}
	return &streamOutput{func(ctx huma.Context) { //nolint:contextcheck // huma calls it with the request's own
		defer place.Close()
		defer a.feed.leave(to)
		r, w := humago.Unwrap(ctx)
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold events back
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodHead {
			return
		}
		a.send(r.Context(), http.NewResponseController(w), w, to, place.Ended())
	}}, nil
}

// send writes events as they come, until one of several things ends.
func (a *API) send(ctx context.Context, control *http.ResponseController, w http.ResponseWriter, to *follower, ended <-chan struct{}) {
	write := func(text []byte) bool {
		if len(text) == 0 {
			return true
		}
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where there is a connection
		if _, err := w.Write(text); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	// The place where it begins, so that one whose connection breaks before the first
	// event can go on there as well.
	if !write([]byte("retry: 2000\nid: " + strconv.FormatInt(to.place, 10) + "\n: connected\n\n")) {
		return
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for write(a.waiting(ctx, to)) {
		select {
		case <-ended: // before what it must not tell any more
			return
		default:
		}
		select {
		case <-to.wake:
		case <-tick.C:
			if !write([]byte(": heartbeat\n\n")) {
				return
			}
		case <-ended:
			return
		case <-a.feed.end:
			write(a.waiting(ctx, to))
			return
		case <-ctx.Done():
			return
		}
	}
}
