package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/hook/verify"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// Path is below which deliveries are posted.
const Path = "/hooks/"

const (
	mostFlights = 1024     // requests at once
	smallBody   = 32 << 10 // bytes of a body that every request may hold
	mostLarge   = 64 << 20 // bytes of all larger bodies together

	// bodyTimeout is how long a body may take to arrive, and storeTimeout how long
	// it may take to be kept.
	bodyTimeout  = 10 * time.Second
	storeTimeout = 10 * time.Second
)

// answer is what a sender is told.
type answer struct {
	status  int
	outcome string // for the metrics; empty is not counted
	body    any
}

// ServeHTTP takes a delivery.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	name, ok := strings.CutPrefix(r.URL.Path, Path)
	var a answer
	switch {
	case !ok || name == "" || strings.Contains(name, "/"):
		a = noHook()
	case r.Method != http.MethodPost:
		h.Set("Allow", http.MethodPost)
		a = problem(http.StatusMethodNotAllowed, "method_not_allowed", "Deliveries are posted.")
	default:
		a = s.answer(w, r, name)
	}
	if a.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Type", "application/json")
	if p, bad := a.body.(client.Problem); bad {
		p.RequestID = store.NewID()
		a.body = p
		h.Set("Content-Type", "application/problem+json")
		h.Set("X-Request-Id", p.RequestID)
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // whoever sent it may be gone
}

// answer finds the hook before anything of the body is read.
func (s *Service) answer(w http.ResponseWriter, r *http.Request, name string) answer {
	t, err := s.find(r.Context(), name)
	switch {
	case err != nil:
		return unavailable("The database does not answer.")
	case t == nil:
		return noHook()
	}
	select {
	case s.flights <- struct{}{}:
		defer func() { <-s.flights }()
	default:
		s.counted.WithLabelValues(name, "unavailable").Inc()
		return unavailable("There are too many deliveries at once.")
	}
	a := s.receive(w, r, t)
	if a.outcome != "" {
		s.counted.WithLabelValues(name, a.outcome).Inc()
	}
	return a
}

// receive reads a delivery, decides whether to believe it, and keeps it.
func (s *Service) receive(w http.ResponseWriter, r *http.Request, t *target) answer {
	raw, release, err := s.body(w, r, int64(t.definition.MaxBytes))
	defer release()
	if err != nil {
		return s.unread(r, t, int64(len(raw)), err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout) // it is here: whoever hung up need not send it again
	defer cancel()
	for range 3 {
		a, changed := s.take(ctx, r, t, raw)
		if !changed {
			return a
		}
		// Another process changed the hook: it decides anew, by what is in force.
		if err := s.Load(ctx); err != nil {
			return unavailable("The database does not answer.")
		}
		if t = s.inMemory(t.Name); t == nil {
			return noHook()
		}
	}
	return unavailable("The hook is being changed.")
}

// take handles a delivery by one version of its hook, and reports whether there is
// another one by now.
func (s *Service) take(ctx context.Context, r *http.Request, t *target, raw []byte) (a answer, changed bool) {
	if t.verifier == nil {
		s.log.Error("a delivery cannot be verified", "hook", t.Name, "why", t.why)
		return unavailable("The hook has no secret here."), false
	}
	if err := t.verifier.Check(r.Header, raw, time.Now()); err != nil {
		refusal, _ := errors.AsType[*verify.Refusal](err)
		return s.refuse(ctx, r, t, int64(len(raw)), http.StatusUnauthorized, refusal.Code, refusal.Msg), false
	}
	in, err := t.read(r.Header, raw)
	if err != nil {
		return s.refuse(ctx, r, t, int64(len(raw)), http.StatusUnprocessableEntity, "unreadable", err.Error()), false
	}
	if challenge, ok := t.challenge(in.value); ok {
		return answer{status: http.StatusOK, body: map[string]string{"challenge": challenge}}, false
	}
	done, err := s.keep(ctx, t, in)
	switch {
	case errors.Is(err, errChanged):
		return answer{}, true
	case err != nil:
		s.log.Warn("a delivery could not be kept", "hook", t.Name, "delivery", in.id, "err", err)
		return unavailable("The delivery could not be kept."), false
	}
	s.cfg.Changed(t.Name)
	told := client.Received{DeliveryID: in.id, Outcome: done.Outcome}
	if done.ID == 0 {
		told.Known, told.Outcome = true, ""
		return answer{http.StatusOK, "known", told}, false
	}
	told.ID = fmt.Sprint(done.ID)
	return answer{http.StatusAccepted, done.Outcome, told}, false
}

// The ways in which a body can be wrong.
var (
	errTooLarge = errors.New("the body is too large")
	errSlow     = errors.New("the body came too slowly")
	errBusy     = errors.New("there are too many large bodies at once")
)

// body reads the body whole. A small one costs nobody anything; a larger one waits
// until there is room for it.
func (s *Service) body(w http.ResponseWriter, r *http.Request, most int64) (raw []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > most {
		return nil, release, errTooLarge
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTimeout)) // where there is a connection
	raw, err = io.ReadAll(io.LimitReader(r.Body, min(most+1, smallBody)))
	if err == nil && int64(len(raw)) == smallBody && most >= smallBody {
		ctx, cancel := context.WithTimeout(r.Context(), s.bodyTimeout)
		defer cancel()
		size := most
		if r.ContentLength > 0 {
			size = r.ContentLength
		}
		held, full := s.large.Acquire(ctx, size)
		if full != nil {
			return raw, release, errBusy
		}
		release = func() { s.large.Release(held) }
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(r.Body, most+1-int64(len(raw))))
		raw = append(raw, rest...)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return raw, release, errSlow
	case err != nil:
		return raw, release, err
	case int64(len(raw)) > most:
		return raw, release, errTooLarge
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return raw, release, nil
}

// unread answers a request whose body could not be read whole.
func (s *Service) unread(r *http.Request, t *target, bytes int64, err error) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout)
	defer cancel()
	switch {
	case errors.Is(err, errBusy):
		return unavailable("There are too many large deliveries at once.")
	case errors.Is(err, errTooLarge):
		return s.refuse(ctx, r, t, max(bytes, r.ContentLength), http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the body has more than the %d bytes that are allowed", t.definition.MaxBytes))
	case errors.Is(err, errSlow):
		return s.refuse(ctx, r, t, bytes, http.StatusRequestTimeout, "timeout", errSlow.Error())
	}
	return s.refuse(ctx, r, t, bytes, http.StatusUnprocessableEntity, "unreadable", "the body ended before it was whole")
}

// refuse answers a delivery that is not taken, and writes that down, within bounds.
func (s *Service) refuse(ctx context.Context, r *http.Request, t *target, bytes int64, status int, code, why string) answer {
	if s.refusals.allow(t.Name, time.Now()) {
		d := hookstore.Delivery{Hook: t.Name, Reason: why, Headers: t.kept(r.Header), Bytes: bytes}
		err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return hookstore.In(tx).AddRefused(ctx, d, refusedKept) }, store.Lazy)
		if err != nil {
			s.log.Warn("a refused delivery could not be written down", "hook", t.Name, "why", why, "err", err)
		}
		s.cfg.Changed(t.Name)
	}
	a := problem(status, code, strings.ToUpper(why[:1])+why[1:]+".")
	a.outcome = hookstore.Refused
	return a
}

func noHook() answer {
	return problem(http.StatusNotFound, string(pawl.CodeNotFound), "There is no such hook.")
}

func unavailable(detail string) answer {
	a := problem(http.StatusServiceUnavailable, string(pawl.CodeUnavailable), detail)
	a.outcome = "unavailable"
	return a
}

func problem(status int, code, detail string) answer {
	return answer{status: status, body: client.Problem{
		Type: "urn:pawl:problem:" + code, Title: http.StatusText(status), Status: status, Code: code, Detail: detail, Hint: "Whoever runs the server sees why at the hook's page.",
	}}
}

// challenge is what Slack wants back when an address is entered there.
func (t *target) challenge(body any) (string, bool) {
	fields, _ := body.(map[string]any)
	text, ok := fields["challenge"].(string)
	return text, ok && t.definition.Verify.Scheme == verify.Slack && fields["type"] == "url_verification"
}

// longestKept is how much of a header is kept, in bytes.
const longestKept = 512

// kept are the headers that are kept: those that say what a delivery is, and those
// that the hook asks about. None of them is a secret.
func (t *target) kept(h http.Header) map[string]string {
	out := map[string]string{}
	names := []string{
		"Content-Type", "User-Agent", "Webhook-Id", "Webhook-Timestamp", "X-Github-Event", "X-Github-Delivery", "X-Github-Hook-Id",
		"X-Slack-Request-Timestamp", "X-Slack-Retry-Num", "X-Slack-Retry-Reason", "X-Gitlab-Event", "X-Event-Key", "Idempotency-Key", telemetry.Header,
	}
	for text := range t.definition.When {
		if at, err := spec.ParseSelector(text); err == nil && at.Header != "" {
			names = append(names, at.Header)
		}
	}
	if at, _ := t.definition.ID(); at.Header != "" {
		names = append(names, at.Header)
	}
	settings := t.definition.Settings()
	for _, name := range names {
		if value := h.Get(name); value != "" && !settings.Secret(name) {
			out[http.CanonicalHeaderKey(name)] = strings.ToValidUTF8(value[:min(len(value), longestKept)], "\uFFFD")
		}
	}
	return out
}
