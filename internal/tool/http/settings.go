package httptool

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const defaultIdempotencyHeader = "Idempotency-Key"

// New makes the connection that a definition describes:
//
//	baseUrl: https://shop.example.com/v1
//	headers: {Authorization: "Bearer ${SHOP_TOKEN}"}
//	timeout: 30s
//	maxBody: 4MiB
//	idempotencyHeader: Idempotency-Key
//	reconcile:
//	  post: {get: "/orders?key={idempotencyKey}", found: items.0, absentAfter: 2m}
//	test: {get: /health}
func New(settings *connector.Settings) (connector.Connection, bool) {
	var written written
	settings.Read(&written)
	s := &Service{client: settings.HTTP, name: settings.Name, reconcile: map[string]question{}}
	s.quota, s.log = settings.Quota, settings.Log
	s.timeout, s.maxBody, s.idempotencyHeader = written.Timeout, int64(written.MaxBody), defaultIdempotencyHeader
	if written.BaseURL.Value != "" {
		s.readBase(settings, written.BaseURL)
	}
	if written.IdempotencyHeader.Value != "" {
		s.readIdempotencyHeader(settings, written.IdempotencyHeader)
	}
	s.headers = settings.Headers(written.Headers, s.ownHeader)
	for method, q := range written.Reconcile {
		s.readQuestion(settings, method, q)
	}
	if written.Test != nil {
		s.readTest(settings, written.Test.Get)
	}
	s.secrets = redact.New(settings.Secrets())
	return s, settings.OK()
}

// written is a definition as it stands in its file.
type written struct {
	BaseURL           definition.Secret          `json:"baseUrl" definition:"required"`
	Timeout           time.Duration              `json:"timeout" definition:"default=30s,min=1ms,max=10m"`
	MaxBody           definition.Size            `json:"maxBody" definition:"default=4MiB,min=1,max=32MiB"`
	IdempotencyHeader definition.Secret          `json:"idempotencyHeader"`
	Headers           definition.Secrets         `json:"headers"`
	Reconcile         map[string]writtenQuestion `json:"reconcile"`
	Test              *struct {
		Get string `json:"get" definition:"required"`
	} `json:"test"`
}

type writtenQuestion struct {
	Get         string        `json:"get" definition:"required"`
	Found       string        `json:"found" definition:"nonempty"`
	AbsentAfter time.Duration `json:"absentAfter" definition:"min=1ms,max=720h"`
}

func (s *Service) readBase(settings *connector.Settings, field definition.Secret) {
	base, err := url.Parse(field.Value)
	fault := ""
	switch {
	case err != nil:
		fault = "it is not a URL"
	case base.Scheme != "http" && base.Scheme != "https":
		fault = "it must begin with https:// or http://"
	case base.Hostname() == "":
		fault = "it names no host"
	case base.User != nil:
		fault = "it holds a user name or password; put credentials into headers"
	case base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		fault = "it must end with the path, without ? and #"
	case climbs(base.EscapedPath()):
		fault = "its path has .. in it"
	}
	if fault != "" {
		settings.Add(field.Pointer, "baseUrl %s cannot be used: %s", pawl.Quote(field.Written), fault)
		return
	}
	if s.client == nil && !settings.CheckOnly {
		settings.Add(field.Pointer, "calls to web services are not possible here")
		return
	}
	s.base = base
}

func (s *Service) readIdempotencyHeader(settings *connector.Settings, field definition.Secret) {
	switch {
	case !outbound.IsHeaderName(field.Value):
		settings.Add(field.Pointer, "%s is not the name of a header", pawl.Quote(field.Written))
	case isOwn(field.Value) || isCredential(field.Value):
		settings.Add(field.Pointer, "the header %s has another meaning", field.Value)
	default:
		s.idempotencyHeader = field.Value
	}
}

// ownHeader is why a header cannot be in a definition, or empty.
func (s *Service) ownHeader(name string) string {
	if isOwn(name) || strings.EqualFold(name, s.idempotencyHeader) {
		return "is set by Pawl"
	}
	return ""
}

func (s *Service) readQuestion(settings *connector.Settings, method string, w writtenQuestion) {
	pointer := "/reconcile" + definition.Pointer(method)
	if fault := mutationFault(method); fault != "" {
		settings.AddName(pointer, "%s", fault)
		return
	}
	q := question{path: s.readTemplate(settings, pointer+"/get", w.Get), absentAfter: cmp.Or(w.AbsentAfter, connector.Absence(s.timeout))}
	if w.Found != "" {
		q.found = strings.Split(w.Found, ".")
		if strings.Contains("."+w.Found+".", "..") {
			settings.Add(pointer+"/found", "found %s must be names with dots between them, such as items.0", pawl.Quote(w.Found))
		}
	}
	s.reconcile[method] = q
}

func mutationFault(method string) string {
	known := mutations()
	if slices.Contains(known, method) {
		return ""
	}
	return "there is no mutation " + pawl.Quote(method) + ". " + pawl.Suggest(method, known, "The mutations are "+strings.Join(known, ", ")+".")
}

// readTemplate reads a path with placeholders, and tries it out.
func (s *Service) readTemplate(settings *connector.Settings, pointer, text string) template {
	parsed, fault := parseTemplate(text)
	if fault == "" && s.base != nil {
		if _, err := s.target(parsed.fill(func(part) string { return "x" }), nil); err != nil {
			fault = err.Error()
		}
	}
	if fault != "" {
		settings.Add(pointer, "%s", fault)
	}
	return parsed
}

func (s *Service) readTest(settings *connector.Settings, path string) {
	s.probe = path
	if s.base == nil {
		return
	}
	if _, err := s.target(path, nil); err != nil {
		settings.Add("/test/get", "%s", err)
	}
}
