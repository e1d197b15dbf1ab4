package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlrun/pawl/client"
)

// said is what became of an action, for the page on which it was asked for.
type flash struct {
	notice notice
	status int
	back   string
}

type flashKey struct{}

func flashFrom(ctx context.Context) *flash {
	told, _ := ctx.Value(flashKey{}).(*flash)
	return told
}

// change asks the API for a change on behalf of a form. Done, the browser is
// sent back to the page with the form and told so; refused, that page is shown
// with the reason, and with the status of the refusal.
func (s *Site) change(w http.ResponseWriter, r *http.Request, v *visit, path string, body any, done string) {
	s.changeBy(w, r, v, http.MethodPost, path, body, done)
}

// changeBy is change with another method.
func (s *Site) changeBy(w http.ResponseWriter, r *http.Request, v *visit, method, path string, body any, done string) {
	if err := s.inside.call(r.Context(), v.who.text, method, path, body, nil); err != nil {
		s.refused(w, r, err)
		return
	}
	s.done(w, r, v, notice{Text: done})
}

// pause pauses a lane, with what the form says about that.
func (s *Site) pause(w http.ResponseWriter, r *http.Request, v *visit, path, done string) {
	how := client.PauseRequest{Until: strings.TrimSpace(r.FormValue("until")), Note: strings.TrimSpace(r.FormValue("note"))}
	if how.Until != "" {
		done = "Paused. It continues by itself at the time that you named."
	}
	s.change(w, r, v, path, how, done)
}

func (s *Site) done(w http.ResponseWriter, r *http.Request, v *visit, n notice) {
	s.sessions.say(v.who.cookie, n)
	http.Redirect(w, r, backOf(r), http.StatusSeeOther)
}

// refused shows the page that the form is on once more.
func (s *Site) refused(w http.ResponseWriter, r *http.Request, err error) {
	status, n := s.noticeOf(r, err)
	back := backOf(r)
	target, parseErr := url.Parse(back)
	if parseErr != nil {
		s.fail(w, r, status, n)
		return
	}
	again := r.Clone(context.WithValue(r.Context(), flashKey{}, &flash{n, status, back}))
	again.Method, again.URL, again.RequestURI, again.Body = http.MethodGet, target, back, http.NoBody
	again.Form, again.PostForm = nil, nil
	s.mux.ServeHTTP(w, again)
}

// backOf is the page that a form is on.
func backOf(r *http.Request) string {
	if back := localPath(r.FormValue("back")); back != "" {
		return back
	}
	return "/"
}

// segment is a part of the path of a page, fit for a path of the API.
func segment(r *http.Request, name string) string { return url.PathEscape(r.PathValue(name)) }
