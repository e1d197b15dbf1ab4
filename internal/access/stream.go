package access

import (
	"context"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// How many streams one process holds, of programs and of pages, and how many of
// them for one user: nobody can take them all.
const (
	MostStreams       = 1000
	MostStreamsOfUser = 100
)

// streamCheck is how often the tokens behind streams are looked at. A stream
// outlives its token by so much and the time of one small read, whichever
// process the token was revoked by.
const streamCheck = time.Second

// Stream is something that stays open in the name of a token.
type Stream struct {
	token string
	user  string
	ended chan struct{}
	of    *streams
}

// Ended is closed when the token is no longer good.
func (s *Stream) Ended() <-chan struct{} { return s.ended }

// Close gives the place back.
func (s *Stream) Close() { s.of.leave(s) }

// Open takes a place for a stream. It fails with too_many_streams when there is
// none left, for the user or at all.
func (k *Keeper) Open(t *userstore.Token) (*Stream, error) { return k.streams.open(t) }

// streams are those of one process. While there are any, a goroutine watches
// their tokens.
type streams struct {
	look func(ctx context.Context, ids []string) (good map[string]bool, err error)

	mu     sync.Mutex
	list   map[*Stream]struct{} // guarded by mu
	ofUser map[string]int       // guarded by mu
	wake   chan struct{}        // of the goroutine that watches; nil while there is none; guarded by mu
}

func (l *streams) open(t *userstore.Token) (*Stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= MostStreams {
		return nil, tooMany("this server has as many streams as it can hold", "Try again in a moment.")
	}
	if l.ofUser[t.User.ID] >= MostStreamsOfUser {
		return nil, tooMany(t.User.Name+" has as many streams as one user can have", "Close some that are open, or follow several kinds with one stream.")
	}
	if l.list == nil {
		l.list, l.ofUser = map[*Stream]struct{}{}, map[string]int{}
	}
	s := &Stream{token: t.ID, user: t.User.ID, ended: make(chan struct{}), of: l}
	l.list[s] = struct{}{}
	l.ofUser[s.user]++
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
		go l.watch(l.wake)
	}
	return s, nil
}

func tooMany(msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeUnavailable, Reason: "too_many_streams", Msg: msg, Hint: hint}
}

func (l *streams) leave(s *Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.list[s]; !there {
		return
	}
	delete(l.list, s)
	if l.ofUser[s.user]--; l.ofUser[s.user] == 0 {
		delete(l.ofUser, s.user)
	}
	if len(l.list) == 0 {
		close(l.wake)
		l.wake = nil
	}
}

// nudge has the tokens looked at now.
func (l *streams) nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake == nil {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// watch ends streams whose tokens are no longer good, until there are none.
func (l *streams) watch(wake <-chan struct{}) {
	tick := time.NewTicker(streamCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case _, going := <-wake:
			if !going {
				return
			}
		}
		l.check()
	}
}

// check looks at all tokens once. A database that does not answer ends nothing.
func (l *streams) check() {
	l.mu.Lock()
	var ids []string
	seen := map[string]bool{}
	for s := range l.list {
		if !seen[s.token] {
			seen[s.token] = true
			ids = append(ids, s.token)
		}
	}
	l.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*streamCheck)
	defer cancel()
	good, err := l.look(ctx, ids)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.list {
		if seen[s.token] && !good[s.token] {
			select {
			case <-s.ended:
			default:
				close(s.ended)
			}
		}
	}
}
