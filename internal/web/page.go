package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

// notice is something to tell about what was just done, or could not be.
type notice struct {
	Bad    bool
	Text   string
	Hint   string
	Faults []string
	Code   string // for whoever looks it up
}

// frame is what every page has around its content.
type frame struct {
	Title   string
	Section string // of the navigation
	Path    string // of the page with its query; forms come back to it
	Live    string // what the page follows, see Pulse; empty is nothing
	Since   uint64 // what had been told when the page was begun
	Notice  notice
	Version string
	Now     time.Time

	// Of somebody who is signed in; zero otherwise.
	User      string
	Role      string
	Approvals int // that wait, up to approvalsCounted
	IsAdmin   bool
	Halt      haltBanner

	body any
}

// visit is one request of somebody who is signed in.
type visit struct {
	who   visitor
	now   time.Time
	since uint64 // how much the pulse had told
}

func (v *visit) may(resource, verb string) bool { return may(&v.who.token, resource, verb) }

// newFrame is the frame of a page for somebody who is not known.
func (s *Site) newFrame(r *http.Request, title string) frame {
	return frame{Title: title, Path: r.URL.RequestURI(), Version: s.cfg.Version, Now: time.Now()}
}

// approvalsCounted is up to where the navigation counts what waits.
const approvalsCounted = 10

// frameFor is the frame of a page for somebody.
func (s *Site) frameFor(r *http.Request, v *visit, section, title string) frame {
	f := s.newFrame(r, title)
	f.Section, f.Now = section, v.now
	f.User, f.Role = v.who.token.User.Name, string(v.who.token.User.Role)
	f.IsAdmin = v.may("audit", "admin")
	f.Since = v.since
	f.Halt = s.haltFor(r.Context(), v)
	if v.may("runs", "read") {
		var waiting client.Page[struct{}]
		// Without the number the page is still the page.
		if s.ask(r.Context(), v, "/api/v1/approvals", url.Values{"limit": {strconv.Itoa(approvalsCounted)}}, &waiting) == nil {
			f.Approvals = len(waiting.Items)
		}
		if s.hasSchedules() && s.ask(r.Context(), v, "/api/v1/runs", waitingGraphs(approvalsCounted), &waiting) == nil {
			f.Approvals += len(waiting.Items)
		}
	}
	if said := flashFrom(r.Context()); said != nil {
		f.Notice, f.Path = said.notice, said.back
	} else if !isLive(r) {
		f.Notice = s.sessions.take(v.who.cookie)
	}
	return f
}

// isLive reports whether the live part of a page asks for itself.
func isLive(r *http.Request) bool { return r.Header.Get("X-Pawl-Live") != "" }

// ask reads something of the API as the visitor.
func (s *Site) ask(ctx context.Context, v *visit, path string, query url.Values, out any) error {
	return s.inside.get(ctx, v.who.text, path, query, out)
}

// show sends a page.
func (s *Site) show(w http.ResponseWriter, r *http.Request, name string, f frame, body any) {
	status := http.StatusOK
	if said := flashFrom(r.Context()); said != nil {
		status = said.status
	}
	s.render(w, r, status, name, f, body)
}

// render writes a page whole or not at all. What is shown of others' text is what
// is there: this is the one place where hidden characters become visible.
func (s *Site) render(w http.ResponseWriter, r *http.Request, status int, name string, f frame, body any) {
	f.body = body
	var b bytes.Buffer
	if err := s.pages.write(&b, name, f); err != nil {
		s.log.Error("write a page", "page", name, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, visible.HTML(b.String())) // whoever asked may be gone
	}
}

// problem shows an error as a page.
func (s *Site) problem(w http.ResponseWriter, r *http.Request, err error) {
	status, n := s.noticeOf(r, err)
	s.fail(w, r, status, n)
}

// tell says an error in words, and logs what is nobody's business.
func (s *Site) noticeOf(r *http.Request, err error) (status int, n notice) {
	if p, ok := errors.AsType[*refusal](err); ok {
		n = notice{Bad: true, Text: p.Detail, Hint: p.Hint, Code: p.Code}
		for _, f := range p.Errors {
			n.Faults = append(n.Faults, strings.TrimPrefix(f.Pointer, "/")+" "+f.Message)
		}
		if p.Status >= http.StatusInternalServerError && p.RequestID != "" {
			n.Hint = fmt.Sprintf("%s Request %s.", n.Hint, p.RequestID)
		}
		return p.Status, n
	}
	e, ok := errors.AsType[*pawl.Error](err)
	switch {
	case ok && e.Code.HTTPStatus() < http.StatusInternalServerError:
		return e.Code.HTTPStatus(), notice{Bad: true, Text: sentence(e.Msg), Hint: e.Hint, Code: string(e.Code)}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, pawl.ErrUnavailable):
		return http.StatusServiceUnavailable, notice{Bad: true, Text: "The database did not answer in time.", Hint: "Try again in a moment."}
	}
	if r.Context().Err() == nil {
		s.log.Error("a page failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	return http.StatusInternalServerError, notice{Bad: true, Text: "Something went wrong in Pawl.", Hint: "See the server log for the cause."}
}

// fail shows what went wrong as a page of its own.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, status int, n notice) {
	title := http.StatusText(status)
	if status == http.StatusNotFound {
		title = "Not found"
	}
	f := s.newFrame(r, title)
	if who, ok := s.signedIn(r); ok {
		f = s.frameFor(r, &visit{who: who, now: f.Now}, "", title)
	}
	f.Notice = notice{}
	s.render(w, r, status, "problem.html", f, problemPage{status, n})
}

type problemPage struct {
	Status int
	Notice notice
}

// showLost answers whatever no page takes.
func (s *Site) showLost(w http.ResponseWriter, r *http.Request, _ *visit) {
	s.fail(w, r, http.StatusNotFound, notice{Text: "There is no page at " + r.URL.Path + ".", Hint: "The overview lists everything that runs."})
}

// pager leads to the other pages of a list.
type pager struct {
	First string // empty on the first page
	Next  string // empty at the end
}

// pagerOf makes a pager of a list whose place is in the parameter cursor.
func pagerOf[T ~string](r *http.Request, next T) pager {
	var p pager
	query := r.URL.Query()
	if query.Get("cursor") != "" {
		query.Del("cursor")
		p.First = pathWith(r.URL.Path, query)
	}
	if next != "" {
		query.Set("cursor", string(next))
		p.Next = pathWith(r.URL.Path, query)
	}
	return p
}

func pathWith(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// listQuery takes over the parameters of a page that a list knows; what is
// empty is left out.
func listQuery(r *http.Request, limit int, names ...string) url.Values {
	out := url.Values{"limit": {strconv.Itoa(limit)}}
	for _, name := range append(names, "cursor") {
		if value := r.URL.Query().Get(name); value != "" {
			out.Set(name, value)
		}
	}
	return out
}
