package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// livePath is the stream that pages follow; ?lane=kind:name narrows it, and
// since is how much had been told when the page was begun.
const livePath = "/live"

const (
	// liveEvery is how often a page is told at most: each time costs the
	// server a page.
	liveEvery = time.Second

	// liveTick is how often it is told in any case. Countdowns move, and what
	// other nodes do can be lost on the way.
	liveTick = 10 * time.Second

	// liveWrite is how long a browser may refuse to read.
	liveWrite = 30 * time.Second
)

// serveLive tells a page whenever it should look again.
func (s *Site) serveLive(w http.ResponseWriter, r *http.Request) {
	who, ok := s.signedIn(r)
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	lane := r.URL.Query().Get("lane")
	if lane == "" {
		lane = everyLane
	}
	if !s.maySee(r, &visit{who: who}, lane) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	place, err := s.cfg.Keeper.Open(&who.token) //nolint:contextcheck // one watch serves the streams of all
	if err != nil {                             // the page looks again by the clock
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	defer place.Close()
	f, ok := s.cfg.Pulse.follow(lane)
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer s.cfg.Pulse.leave(f)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that gathers would hold events back
	w.WriteHeader(http.StatusOK)
	// What was told between the page and its stream is told again, and so is
	// what a stream missed while it was broken.
	if since := r.URL.Query().Get("since"); since != "" && since != strconv.FormatUint(s.cfg.Pulse.told.Load(), 10) {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	s.sendLive(w, r, f, place.Ended())
}

// maySee reports whether a visitor may know that a lane does something. What an
// owned lane does is its owner's alone.
func (s *Site) maySee(r *http.Request, v *visit, name string) bool {
	kind, key, _ := strings.Cut(name, ":")
	k, ok := s.cfg.Kinds.Get(pawl.Kind(kind))
	if !ok {
		return true
	}
	var owner string
	err := s.cfg.DB.Read(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		owner, err = k.OwnerOf(ctx, tx, key)
		return err
	})
	if err != nil || owner == "" {
		return err == nil
	}
	viewer := ownerOf(v, k.Kind())
	return v.may(kind+"s", "read") && (viewer == "" || viewer == owner)
}

func (s *Site) sendLive(w http.ResponseWriter, r *http.Request, f *follower, ended <-chan struct{}) {
	control := http.NewResponseController(w)
	write := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(liveWrite)) // where there is a connection
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	if !write(": connected\n\n") {
		return
	}
	tick := time.NewTicker(liveTick)
	defer tick.Stop()
	for {
		select {
		case <-f.wake:
		case <-tick.C:
			if _, ok := s.signedIn(r); !ok { // the session can be over before its token
				return
			}
		case <-ended:
			return
		case <-s.cfg.Pulse.end:
			return
		case <-r.Context().Done():
			return
		}
		if !write("event: change\ndata: {}\n\n") {
			return
		}
		select {
		case <-time.After(liveEvery):
		case <-ended:
			return
		case <-s.cfg.Pulse.end:
			return
		case <-r.Context().Done():
			return
		}
	}
}
