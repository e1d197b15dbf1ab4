package execution

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// The routes of the service. The first two are one: the form with :run is that
// of other services of its kind (C-42).
const (
	pathGraphs  = "/api/internal/graphs/"
	pathOutcome = "/api/internal/executions/outcome"
	pathCancel  = "/api/internal/executions/cancel"
	pathResume  = "/api/internal/executions/resume"
)

// Limits of a request.
const (
	maxAuthorization = 512
	maxToken         = 256
	maxBody          = 8 << 20
)

// Handler serves API over HTTP to whoever has the service token, or is let in by
// Config.Admit. An empty token is nobody's, as is one that is longer than a
// request may carry.
//
//	POST /api/internal/graphs/{graphId}/runs
//	POST /api/internal/graphs/{graphId}:run
//	GET  /api/internal/executions/outcome
//	POST /api/internal/executions/cancel
//	POST /api/internal/executions/resume      the body is the answer of a person
//
// All take the header Idempotency-Key. Checks come in this order: the token
// (401, 403), the graph id (404), the key (400), the body (400), then those of
// Service.Run: another request with the key (422) or in progress (409), the
// grant (403), credits (402).
func (s *Service) Handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathGraphs+"{graphId}/runs", func(w http.ResponseWriter, r *http.Request) {
		s.serveRun(w, r, r.PathValue("graphId"))
	})
	mux.HandleFunc("POST "+pathGraphs+"{graphRun}", func(w http.ResponseWriter, r *http.Request) {
		graphID, ok := strings.CutSuffix(r.PathValue("graphRun"), ":run")
		if !ok {
			graphID = "" // which is no graph
		}
		s.serveRun(w, r, graphID)
	})
	mux.HandleFunc("GET "+pathOutcome, func(w http.ResponseWriter, r *http.Request) {
		key, err := keyOf(r)
		var answer contract.RunAnswerV1
		if err == nil {
			answer, err = s.Outcome(r.Context(), key)
		}
		s.respond(w, answer, err)
	})
	mux.HandleFunc("POST "+pathCancel, func(w http.ResponseWriter, r *http.Request) {
		key, err := keyOf(r)
		if err == nil {
			err = s.cancel(r.Context(), key, guestOf(r).Actor)
		}
		s.respond(w, struct{}{}, err)
	})
	mux.HandleFunc("POST "+pathResume, s.serveResume)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guest, err := s.admit(r, token)
		if err != nil {
			if pawl.ErrorCode(err) == pawl.CodeUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			s.respond(w, nil, err)
			return
		}
		ctx := context.WithValue(r.Context(), guestKey{}, guest)
		if !oteltrace.SpanContextFromContext(ctx).IsValid() { // else its span is a part of that trace
			ctx = telemetry.With(ctx, r.Header.Get(telemetry.Header))
		}
		mux.ServeHTTP(w, r.WithContext(ctx))
	})
}

// admit lets in whoever has the service token, and whoever Config.Admit lets in.
func (s *Service) admit(r *http.Request, token string) (Guest, error) {
	headers := r.Header.Values("Authorization")
	if authentic(headers, token) {
		return Guest{}, nil
	}
	wrong := &pawl.Error{Code: pawl.CodeUnauthorized, Op: "run graph", Msg: "the service token is missing or wrong", Hint: "Send service.token of the data folder, or a token with the scope graphs:execute."}
	if s.admitted == nil || len(headers) != 1 || len(headers[0]) > maxAuthorization {
		return Guest{}, wrong
	}
	scheme, given, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" || len(given) > maxToken {
		return Guest{}, wrong
	}
	guest, err := s.admitted(r.Context(), given)
	if pawl.ErrorCode(err) == pawl.CodeUnauthorized {
		return Guest{}, wrong
	}
	return guest, err
}

// authentic compares the token of a request in a time that does not depend on
// where the two differ, nor on how long the right one is.
func authentic(headers []string, token string) bool {
	if len(headers) != 1 || len(headers[0]) > maxAuthorization {
		return false
	}
	scheme, given, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" || len(given) > maxToken || token == "" || len(token) > maxToken {
		return false
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

type guestKey struct{}

func guestOf(r *http.Request) Guest {
	guest, _ := r.Context().Value(guestKey{}).(Guest)
	return guest
}

// keyOf is the idempotency key of a request, in the space of whoever sends it;
// one that is given twice is none.
func keyOf(r *http.Request) (string, error) {
	key := ""
	if keys := r.Header.Values("Idempotency-Key"); len(keys) == 1 {
		key = keys[0]
	}
	if err := contract.CheckKey(key); err != nil {
		return "", err
	}
	return guestOf(r).key(key), nil
}

func (s *Service) serveRun(w http.ResponseWriter, r *http.Request, graphID string) {
	if err := checkGraphID(graphID); err != nil {
		s.respond(w, nil, err)
		return
	}
	key, err := keyOf(r)
	if err != nil {
		s.respond(w, nil, err)
		return
	}
	var req contract.RunRequestV1
	if err := readBody(w, r, &req); err != nil {
		s.respond(w, nil, err)
		return
	}
	guest := guestOf(r)
	answer, err := s.run(r.Context(), key, graphID, guest.clean(req), guest.Actor)
	s.respond(w, answer, err)
}

func (s *Service) serveResume(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(r)
	if err != nil {
		s.respond(w, nil, err)
		return
	}
	var person json.RawMessage
	if err := readBody(w, r, &person); err != nil {
		s.respond(w, nil, err)
		return
	}
	answer, err := s.resume(r.Context(), key, r.URL.Query().Get("question"), person, guestOf(r).Actor)
	s.respond(w, answer, err)
}

// readBody reads one JSON value. Unknown fields are left alone: a newer caller
// may know more.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err == nil {
		return nil
	}
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return &pawl.Error{Code: pawl.CodeTooLarge, Reason: string(contract.InvalidRequest), Op: "run graph", Msg: "the body is too large", Err: err}
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: string(contract.InvalidRequest), Op: "run graph", Msg: "the body is not the JSON of a request", Err: err,
		Hint: "Send one JSON object with executionGrantId and input.",
	}
}
