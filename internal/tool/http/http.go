package httptool

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Service is the connection to one web service.
type Service struct {
	client  *outbound.Client
	name    string // of the connection
	base    *url.URL
	headers http.Header // of the definition, sent with every request
	timeout time.Duration
	maxBody int64 // of an answer, in bytes

	idempotencyHeader string
	reconcile         map[string]question // by method
	probe             string              // path that Test asks for; empty is the base URL
	secrets           redact.Redactor

	quota connector.Quota // nil: no limits
	log   *slog.Logger    // nil: nobody looks
}

// reads and mutations are the methods.
func reads() []string     { return []string{"get", "head"} }
func mutations() []string { return []string{"post", "put", "patch", "delete"} }

func effectOf(method string) outbound.Effect {
	if slices.Contains(reads(), method) {
		return outbound.Read
	}
	return outbound.Mutation
}

// Methods lists get, head, post, put, patch and delete. Those reconcile for
// which the definition says how.
func (s *Service) Methods() []connector.Method {
	var methods []connector.Method
	for _, name := range reads() {
		methods = append(methods, connector.Method{Name: name})
	}
	for _, name := range mutations() {
		asked, reconciles := s.reconcile[name]
		methods = append(methods, connector.Method{Name: name, Mutation: true, Reconciles: reconciles, AbsentAfter: asked.absentAfter})
	}
	return methods
}

// Call sends one request. Its errors are *connector.Error.
func (s *Service) Call(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	r, err := s.prepare(c)
	if err != nil {
		return nil, s.withoutSecrets(err)
	}
	a, failure := s.send(ctx, r)
	if failure != nil {
		return nil, s.withoutSecrets(failure)
	}
	result, err := s.resultOf(r, a)
	if err != nil {
		return nil, s.withoutSecrets(err)
	}
	return s.secrets.JSON(result), nil
}

// prepare checks a call and makes its request. A mutation that could not be
// asked about later, although the definition says how, is refused.
func (s *Service) prepare(c connector.Call) (request, error) {
	if !slices.Contains(slices.Concat(reads(), mutations()), c.Method) {
		return request{}, &connector.Error{
			Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
			Msg:  "an http connection has no method " + pawl.Quote(c.Method),
			Hint: "The methods are " + strings.Join(slices.Concat(reads(), mutations()), ", ") + ".",
		}
	}
	if effectOf(c.Method) == outbound.Mutation && c.Key == "" {
		return request{}, &connector.Error{Class: pawl.ClassInternal, Code: "no_key", NotApplied: true, Msg: "a mutation needs an idempotency key"}
	}
	a, err := decodeArguments(c.Args)
	if err != nil {
		return request{}, err
	}
	r, err := s.newRequest(c.Method, a)
	if err != nil {
		return request{}, err
	}
	if r.effect == outbound.Mutation {
		r.header.Set(s.idempotencyHeader, c.Key)
	}
	if asked, ok := s.reconcile[c.Method]; ok {
		if _, err := s.ask(asked, c); err != nil {
			return request{}, err
		}
	}
	return r, nil
}
