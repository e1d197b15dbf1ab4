package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// call is what is known of a request beside its content.
type call struct {
	api            *API
	id             string
	method         string
	path           string
	idempotencyKey string
	token          *userstore.Token // nil on open routes
	broken         bool             // the body could not be read to its end
}

type callKey struct{}

// callOf returns the call of a request's context.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// strictPolicy is for answers that no browser should make anything of.
const strictPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// ServeHTTP answers a request. Whatever happens, the answer is a problem or
// what the route promises, and carries the request's id.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{api: a, id: requestID(r.Header.Get("X-Request-Id")), method: r.Method, path: r.URL.Path}
	out := &answer{ResponseWriter: w, call: c}
	h := w.Header()
	h.Set("X-Request-Id", c.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", strictPolicy)
	// In a copy: the server must find its own body, or it takes what is left of one that
	// is too large for the next request.
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	if r.Body != nil {
		r.Body = &body{r.Body, c}
	}
	defer func() {
		if v := recover(); v != nil {
			a.recovered(out, r, v)
		}
		a.log.Debug("request", "method", r.Method, "path", c.path, "status", out.status, "took", time.Since(start), "requestId", c.id)
	}()
	if err := a.admit(r, c, start); err != nil {
		a.fail(out, r, err)
		return
	}
	a.surface.mux.ServeHTTP(out, r)
}

// admit finds out who asks, and reads what is about the request as a whole.
func (a *API) admit(r *http.Request, c *call, now time.Time) (err error) {
	if a.surface.openPaths[r.URL.Path] {
		return nil
	}
	if c.token, err = a.authenticate(r.Context(), r.Header.Get("Authorization"), now); err != nil {
		return err
	}
	if most := a.surface.mostBody; r.ContentLength > most { // the route may take less
		return tooLarge(most)
	}
	if err := checkQuery(r.URL.RawQuery); err != nil {
		return err
	}
	c.idempotencyKey, err = idempotencyKey(r.Header.Values("Idempotency-Key"))
	return err
}

// checkQuery refuses what could be read in more than one way.
func checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return newProblem(http.StatusBadRequest, codeMalformed, "the query of the URL cannot be read", "Escape special characters with percent signs.")
	}
	var f faults
	for _, name := range sortedKeys(query) {
		if len(query[name]) > 1 {
			f.add("/"+escapePointer(name), "is given more than once", "Give each parameter once.")
		}
	}
	return f.problem()
}

// recovered ends a request whose handler panicked.
func (a *API) recovered(out *answer, r *http.Request, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this, too
		panic(v)
	}
	if r.Context().Err() != nil && out.status != 0 {
		return // the client went away while the answer was being written
	}
	a.log.Error("a handler panicked", "method", r.Method, "path", r.URL.Path, "requestId", callOf(r.Context()).id, "panic", v, "stack", string(debug.Stack()))
	if out.status != 0 {
		panic(http.ErrAbortHandler) // half an answer was sent: break the connection, so that nobody takes it for whole
	}
	p, _ := problemOf(r.Context(), errPanic)
	a.fail(out, r, p)
}

// fail answers with a problem, outside of huma.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := a.problemOf(r.Context(), err)
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever asked may be gone
}

// tell turns an error into the problem that is sent, and logs what must not be.
func (a *API) problemOf(ctx context.Context, err error) *problem {
	c := callOf(ctx)
	p, secret := problemOf(ctx, err)
	p.RequestID = c.id
	switch {
	case secret:
		a.log.Error("request failed", "method", c.method, "path", c.path, "requestId", c.id, "err", err)
	case p.Status >= http.StatusInternalServerError && ctx.Err() == nil:
		a.log.Warn("request failed", "method", c.method, "path", c.path, "requestId", c.id, "err", err)
	}
	return p
}

// lost answers whatever no route takes: another method of a known path, or
// nothing at all.
func (a *API) lost(w http.ResponseWriter, r *http.Request) {
	allow := ""
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := a.surface.mux.Handler(probe); pattern != lostPattern && pattern != "" {
			if allow != "" {
				allow += ", "
			}
			allow += method
		}
	}
	if allow == "" {
		a.fail(w, r, newProblem(http.StatusNotFound, "not_found", "there is nothing at "+r.URL.Path, "/docs and /openapi.json describe every route."))
		return
	}
	p := newProblem(http.StatusMethodNotAllowed, codeMethodNotAllowed, r.Method+" is not possible at "+r.URL.Path, "")
	p.header.Set("Allow", allow)
	a.fail(w, r, p)
}

// maxRequestID is the longest id of a caller's own that is taken over.
const maxRequestID = 128

// requestID takes over the caller's id if it is harmless in logs and headers.
func requestID(given string) string {
	if given == "" || len(given) > maxRequestID {
		return store.NewID()
	}
	for _, c := range []byte(given) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '-' && c != '_' && c != '.' && c != ':' && c != '/' {
			return store.NewID()
		}
	}
	return given
}

// body notes when what a client sends is no body, such as chunks that are not
// well formed. Too much of it and too late have answers of their own.
type body struct {
	io.ReadCloser
	call *call
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		if _, large := errors.AsType[*http.MaxBytesError](err); !large {
			b.call.broken = true
		}
	}
	return n, err
}

// Close leaves the rest to the server, which hears out whom it refuses.
func (b *body) Close() error { return nil }

// answer remembers what was sent.
type answer struct {
	http.ResponseWriter
	call   *call
	status int // zero while nothing was sent
}

func (w *answer) WriteHeader(status int) {
	if w.call.broken && status == http.StatusInternalServerError {
		status = http.StatusBadRequest // huma takes what the client did for a fault of ours; see transform
	}
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
