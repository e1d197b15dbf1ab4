package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// Config is what a site is made of. API, DB and Kinds must be there.
type Config struct {
	// API answers what is asked for below /api, and the pages' own questions.
	API     http.Handler
	DB      *store.DB
	Kinds   lane.Kinds
	Log     *slog.Logger
	Version string

	// Workforce tells who there is to run things. Nil says that somebody is.
	Workforce func(ctx context.Context, tx *store.Tx) (run.Workforce, error)

	// Keeper knows the tokens, and how many pages may be followed; nil makes one.
	Keeper *access.Keeper

	// Pulse tells what changes; nil makes pages refresh by the clock only.
	Pulse *Pulse

	// Admin is the text of the token that whoever opens the one-time link signs
	// in with; empty makes no link.
	Admin string
}

// Site serves the pages, and hands what is meant for the API to it.
type Site struct {
	cfg      Config
	log      *slog.Logger
	inside   apiClient
	sessions *sessions
	links    *links
	mux      *http.ServeMux
	guard    *http.CrossOriginProtection
	pages    pages
}

// New makes a site.
func New(cfg Config) (*Site, error) {
	if cfg.API == nil || cfg.DB == nil || len(cfg.Kinds) == 0 {
		return nil, errors.New("web: an API, a database and kinds are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Keeper == nil {
		cfg.Keeper = access.NewKeeper(cfg.DB)
	}
	if cfg.Pulse == nil {
		cfg.Pulse = NewPulse()
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	s := &Site{
		cfg: cfg, log: cfg.Log, inside: apiClient{cfg.API}, sessions: newSessions(), links: newLinks(), pages: pages,
		mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(),
	}
	s.routes()
	return s, nil
}

const (
	// pagePolicy allows what comes from this server, and nothing inline.
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

	// maxForm is the size of the largest form, in bytes: a result that somebody
	// types in can be as large as the API takes it.
	maxForm = 2 << 20

	pageTimeout = 30 * time.Second
)

// ServeHTTP answers a request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.forAPI(r) {
		s.serveAPI(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // a form without a referrer has no origin either
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	out := &answer{ResponseWriter: w}
	defer func() {
		if v := recover(); v != nil {
			s.recovered(out, r, v)
		}
	}()
	if err := s.guard.Check(r); err != nil {
		s.fail(out, r, http.StatusForbidden, notice{Bad: true, Text: "This request came from another site and was refused.", Hint: "Open the page here and try again."})
		return
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(out, r.Body, maxForm)
	}
	s.mux.ServeHTTP(out, r)
}

// forAPI reports whether a request is for a program: by its address, or
// because whoever asks does not take pages.
func (s *Site) forAPI(r *http.Request) bool {
	if slices.Contains([]string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/api"}, r.URL.Path) || strings.HasPrefix(r.URL.Path, "/api/") {
		return true
	}
	if strings.HasPrefix(r.URL.Path, assetPath) || r.URL.Path == livePath {
		return false
	}
	return !takesPages(r)
}

func takesPages(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// serveAPI hands a request to the API. Somebody who is signed in and looks at
// the description of the API need not send a token by hand.
func (s *Site) serveAPI(w http.ResponseWriter, r *http.Request) {
	described := r.URL.Path == "/docs" || r.URL.Path == "/openapi.json"
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if described && reads && r.Header.Get("Authorization") == "" && takesPages(r) {
		who, ok := s.signedIn(r)
		if !ok {
			http.Redirect(w, r, signInPath(r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+who.text)
	}
	s.cfg.API.ServeHTTP(w, r)
}

// recovered ends a request whose handler panicked.
func (s *Site) recovered(out *answer, r *http.Request, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this, too
		panic(v)
	}
	s.log.Error("a page panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	if out.sent {
		panic(http.ErrAbortHandler) // half a page was sent: nobody should take it for whole
	}
	s.fail(out, r, http.StatusInternalServerError, notice{Bad: true, Text: "Something went wrong in Pawl.", Hint: "See the server log for the cause."})
}

// answer remembers whether anything was sent.
type answer struct {
	http.ResponseWriter
	sent bool
}

func (w *answer) WriteHeader(status int) {
	w.sent = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *answer) Write(b []byte) (int, error) {
	w.sent = true
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
