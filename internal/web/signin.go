package web

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// linkLife is how long a one-time link works.
const linkLife = 15 * time.Minute

// maxToken bounds what is looked at of a pasted token, in bytes.
const maxToken = 512

// links are the codes that each sign one browser in, once.
type links struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // by hash of the code; guarded by mu
}

func newLinks() *links { return &links{until: map[[sha256.Size]byte]time.Time{}} }

func (l *links) make(now time.Time) (code string) {
	code = rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, until := range l.until {
		if !now.Before(until) {
			delete(l.until, key)
		}
	}
	l.until[sha256.Sum256([]byte(code))] = now.Add(linkLife)
	return code
}

// use reports whether a code is good, and makes it worthless.
func (l *links) use(code string, now time.Time) bool {
	key := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.until[key]
	delete(l.until, key)
	return known && now.Before(until)
}

// SignInPath is an address on this server that signs a browser in as the
// administrator, once and within a quarter of an hour. It is empty if there is
// no administrator's token.
func (s *Site) SignInPath() string {
	if s.cfg.Admin == "" {
		return ""
	}
	return "/signin?code=" + s.links.make(time.Now())
}

// signInPath is the sign-in page that leads to a page afterwards.
func signInPath(next string) string {
	if next == "/" || localPath(next) == "" {
		return "/signin"
	}
	return "/signin?next=" + url.QueryEscape(next)
}

// localPath is the path if it leads to a page of this server, and empty
// otherwise: nobody should be sent elsewhere by what an address says.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return ""
	}
	return path
}

// redirectToSignIn sends somebody who is not signed in to the page where one does.
func (s *Site) redirectToSignIn(w http.ResponseWriter, r *http.Request) {
	to := "/signin"
	if r.Method == http.MethodGet {
		to = signInPath(r.URL.RequestURI())
	}
	if r.Header.Get("HX-Request") != "" { // a part of a page must not become the sign-in page
		w.Header().Set("HX-Redirect", "/signin")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

type signInPage struct {
	Next string
}

// showSignIn is the sign-in page, or takes the code of a one-time link. A
// browser that only looks ahead does not use the code up.
func (s *Site) showSignIn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	if _, ok := s.signedIn(r); ok && r.URL.Query().Get("code") == "" {
		http.Redirect(w, r, orHome(next), http.StatusSeeOther)
		return
	}
	code := r.URL.Query().Get("code")
	if code == "" {
		s.render(w, r, http.StatusOK, "signin.html", s.newFrame(r, "Sign in"), signInPage{next})
		return
	}
	if r.Method != http.MethodGet || r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	now := time.Now()
	if !s.links.use(code, now) {
		s.refuseSignIn(w, r, next, "This link has already been used or is older than 15 minutes.", "Restart the server for a new one, or paste a token.")
		return
	}
	if _, err := s.goodToken(r.Context(), s.cfg.Admin, now); err != nil {
		s.refuseSignIn(w, r, next, "The administrator's token of this server is no longer valid.", "Paste another token.")
		return
	}
	s.setCookie(w, r, s.sessions.begin(s.cfg.Admin, now))
	http.Redirect(w, r, orHome(next), http.StatusSeeOther)
}

// signIn takes a token that was pasted.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.FormValue("next"))
	text := strings.TrimSpace(r.FormValue("token"))
	if text == "" || len(text) > maxToken {
		s.refuseSignIn(w, r, next, "This is not a token.", "A token starts with pawl_ and contains no spaces.")
		return
	}
	now := time.Now()
	_, err := s.goodToken(r.Context(), text, now)
	switch {
	case pawl.ErrorCode(err) == pawl.CodeUnauthorized:
		s.refuseSignIn(w, r, next, "This token is not valid on this server.", "It may be expired, revoked or from another server.")
		return
	case err != nil:
		s.problem(w, r, err)
		return
	}
	if c, err := r.Cookie(cookieName(r)); err == nil {
		s.sessions.end(c.Value)
	}
	s.setCookie(w, r, s.sessions.begin(text, now))
	http.Redirect(w, r, orHome(next), http.StatusSeeOther)
}

func (s *Site) refuseSignIn(w http.ResponseWriter, r *http.Request, next, text, hint string) {
	f := s.newFrame(r, "Sign in")
	f.Notice = notice{Bad: true, Text: text, Hint: hint}
	s.render(w, r, http.StatusUnauthorized, "signin.html", f, signInPage{next})
}

func (s *Site) signOut(w http.ResponseWriter, r *http.Request, v *visit) {
	s.sessions.end(v.who.cookie)
	s.setCookie(w, r, "")
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

func orHome(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
