package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/store/userstore"
)

const (
	// sessionIdle ends a session that nobody uses, sessionMost any.
	sessionIdle = 12 * time.Hour
	sessionMost = 7 * 24 * time.Hour

	maxSessions = 10_000
)

// session is a browser that somebody signed in with.
type session struct {
	text  string // of the token; the API is asked with it
	since time.Time
	used  time.Time
	said  *notice // to be shown by the next page
}

// sessions are those of this process, by the hash of their cookie. Comparing
// hashes tells nothing about the cookie by the time it takes.
type sessions struct {
	mu   sync.Mutex
	list map[[sha256.Size]byte]*session // guarded by mu, and so is what it holds
}

func newSessions() *sessions { return &sessions{list: map[[sha256.Size]byte]*session{}} }

// begin makes a session for the holder of a token and returns its cookie.
func (s *sessions) begin(token string, now time.Time) (cookie string) {
	cookie = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= maxSessions {
		s.makeRoomLocked(now)
	}
	s.list[sha256.Sum256([]byte(cookie))] = &session{text: token, since: now, used: now}
	return cookie
}

// makeRoomLocked drops what is over, or else the session that was unused for
// longest.
func (s *sessions) makeRoomLocked(now time.Time) {
	var oldest [sha256.Size]byte
	var oldestUse time.Time
	for key, one := range s.list {
		if one.over(now) {
			delete(s.list, key)
		} else if oldestUse.IsZero() || one.used.Before(oldestUse) {
			oldest, oldestUse = key, one.used
		}
	}
	if len(s.list) >= maxSessions {
		delete(s.list, oldest)
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.used) > sessionIdle || now.Sub(s.since) > sessionMost
}

// token is the text of the token behind a cookie.
func (s *sessions) token(cookie string, now time.Time) (text string, ok bool) {
	key := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.list[key]
	if one == nil || one.over(now) {
		delete(s.list, key)
		return "", false
	}
	one.used = now
	return one.text, true
}

// end forgets a session.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, sha256.Sum256([]byte(cookie)))
}

// say keeps a notice for the next page of the session; take returns it once.
func (s *sessions) say(cookie string, n notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.list[sha256.Sum256([]byte(cookie))]; one != nil {
		one.said = &n
	}
}

func (s *sessions) take(cookie string) (n notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.list[sha256.Sum256([]byte(cookie))]; one != nil && one.said != nil {
		n, one.said = *one.said, nil
	}
	return n
}

// visitor is who asks.
type visitor struct {
	cookie string
	text   string // of the token
	token  userstore.Token
}

// signedIn finds out who asks. The token is looked up every time, so that a
// revoked one ends the session.
func (s *Site) signedIn(r *http.Request) (visitor, bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return visitor{}, false
	}
	now := time.Now()
	text, ok := s.sessions.token(c.Value, now)
	if !ok {
		return visitor{}, false
	}
	t, err := s.goodToken(r.Context(), text, now)
	if err != nil {
		return visitor{}, false
	}
	return visitor{c.Value, text, t}, true
}

// cookieName has the port in it: browsers do not keep the cookies of two
// servers on one machine apart.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		return "pawl_session"
	}
	return "pawl_session_" + port
}

func (s *Site) setCookie(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// A proxy that ends TLS says so. If it lies, its browser sends no cookie.
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// goodToken finds a token that may be used now.
func (s *Site) goodToken(ctx context.Context, text string, now time.Time) (userstore.Token, error) {
	return s.cfg.Keeper.Load(ctx, text, now)
}
