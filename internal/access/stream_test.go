package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func tokenOf(id, user string) *userstore.Token {
	return &userstore.Token{ID: id, User: userstore.User{ID: user, Name: user}}
}

// One user cannot take all streams, and all users together not more than there
// are (P1 15).
func TestStreamsAreBounded(t *testing.T) {
	var l streams
	l.look = func(context.Context, []string) (map[string]bool, error) { return nil, errors.New("away") }
	full := func(user string) bool {
		_, err := l.open(tokenOf("t", user))
		e, ok := errors.AsType[*pawl.Error](err)
		return ok && e.Reason == "too_many_streams" && e.Hint != ""
	}
	var open []*Stream
	take := func(user string) {
		s, err := l.open(tokenOf("t", user))
		if err != nil {
			t.Fatalf("stream %d of %s: %v", len(open), user, err)
		}
		open = append(open, s)
	}
	for range MostStreamsOfUser {
		take("mallory")
	}
	if !full("mallory") {
		t.Error("mallory has more than one user can have")
	}
	for i := range MostStreams - MostStreamsOfUser {
		take(fmt.Sprint("user ", i/MostStreamsOfUser))
	}
	if !full("ada") {
		t.Error("more than there are")
	}
	open[0].Close()
	open[0].Close()
	take("ada")
	if !full("ada") || !full("mallory") {
		t.Error("a place was given back twice")
	}
	for _, s := range open {
		s.Close()
	}
	if l.wake != nil || len(l.list)+len(l.ofUser) != 0 {
		t.Errorf("left are %d streams of %v", len(l.list), l.ofUser)
	}
}

// A stream outlives its token by a second at most, and not at all when the
// token was revoked here. A database that is away ends nothing.
func TestStreamsEndWithTheirTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l streams
		var mu sync.Mutex
		bad, away := map[string]bool{}, false
		l.look = func(_ context.Context, ids []string) (map[string]bool, error) {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return nil, errors.New("away")
			}
			good := map[string]bool{}
			for _, id := range ids {
				good[id] = !bad[id]
			}
			return good, nil
		}
		set := func(fn func()) { mu.Lock(); defer mu.Unlock(); fn() }
		over := func(s *Stream) bool {
			synctest.Wait()
			select {
			case <-s.Ended():
				return true
			default:
				return false
			}
		}
		var all []*Stream
		for _, id := range []string{"a", "a", "b", "c"} {
			s, err := l.open(tokenOf(id, id))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		set(func() { bad["a"] = true })
		time.Sleep(streamCheck)
		if !over(all[0]) || !over(all[1]) || over(all[2]) || over(all[3]) {
			t.Error("not those of the token that another process revoked")
		}
		set(func() { bad["b"] = true })
		l.nudge()
		if !over(all[2]) {
			t.Error("a token that was revoked here goes on")
		}
		set(func() { bad["c"], away = true, true })
		time.Sleep(10 * streamCheck)
		if over(all[3]) {
			t.Error("ended while nobody knew")
		}
		set(func() { away = false })
		time.Sleep(streamCheck)
		if !over(all[3]) {
			t.Error("goes on")
		}
		for _, s := range all {
			s.Close()
		}
	})
}
