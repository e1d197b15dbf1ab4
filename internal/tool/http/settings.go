package httptool

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Defaults and limits of settings.
const (
	defaultTimeout = 30 * time.Second
	longestTimeout = 10 * time.Minute
	defaultBody    = 4 << 20  // bytes
	largestBody    = 32 << 20 // bytes
	longestAbsence = 30 * 24 * time.Hour

	defaultIdempotencyHeader = "Idempotency-Key"
)

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
	before := len(settings.Faults())
	s := &Service{client: settings.Env().HTTP, name: settings.Name(), headers: http.Header{}, reconcile: map[string]question{}}
	s.quota, s.log = settings.Env().Quota, settings.Env().Log
	if field, ok := settings.OneOf("baseUrl"); ok {
		s.readBase(settings, field)
	}
	s.timeout = settings.Duration("timeout", defaultTimeout, time.Millisecond, longestTimeout)
	s.maxBody = settings.Size("maxBody", defaultBody, largestBody)
	s.readIdempotencyHeader(settings)
	s.readHeaders(settings)
	settings.Sections("reconcile", s.readQuestion)
	settings.Section("test", s.readTest)
	s.secrets = connector.NewRedactor(settings.Secrets())
	return s, len(settings.Faults()) == before
}

func (s *Service) readBase(settings *connector.Settings, field connector.Field) {
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
		settings.Refuse(field, "baseUrl %s cannot be used: %s", connector.Quote(field.Written), fault)
		return
	}
	if s.client == nil && !settings.Env().CheckOnly {
		settings.Refuse(field, "calls to web services are not possible here")
		return
	}
	s.base = base
}

func (s *Service) readIdempotencyHeader(settings *connector.Settings) {
	s.idempotencyHeader = defaultIdempotencyHeader
	field, ok := settings.Optional("idempotencyHeader")
	switch {
	case !ok:
	case !isToken(field.Value):
		settings.Refuse(field, "%s cannot be the name of a header", connector.Quote(field.Written))
	case isOwn(field.Value) || isCredential(field.Value):
		settings.Refuse(field, "the header %s has another meaning", field.Value)
	default:
		s.idempotencyHeader = field.Value
	}
}

// readHeaders reads the headers of every request. Their values are secrets, so
// faults tell the names only.
func (s *Service) readHeaders(settings *connector.Settings) {
	isControl := func(r rune) bool { return r != '\t' && unicode.IsControl(r) }
	for _, field := range settings.SecretMapping("headers") {
		switch {
		case !isToken(field.Name):
			settings.RefuseName(field, "%s cannot be the name of a header", connector.Quote(field.Name))
		case isOwn(field.Name) || strings.EqualFold(field.Name, s.idempotencyHeader):
			settings.RefuseName(field, "the header %s is set by Pawl", field.Name)
		case s.headers.Get(field.Name) != "":
			settings.RefuseName(field, "the header %s is there twice", field.Name)
		case strings.ContainsFunc(field.Value, isControl):
			settings.Refuse(field, "the value of the header %s holds a line break or another control character", field.Name)
		default:
			s.headers.Set(field.Name, field.Value)
		}
	}
}

func (s *Service) readQuestion(method connector.Field, section *connector.Settings) {
	var q question
	get, ok := section.Plain("get")
	if ok {
		q.path = s.readTemplate(section, get)
	}
	if section.Has("found") {
		if found, ok := section.Plain("found"); ok {
			q.found = strings.Split(found.Value, ".")
			if strings.Contains("."+found.Value+".", "..") {
				section.Refuse(found, "found %s must be names with dots between them, such as items.0", connector.Quote(found.Written))
			}
		}
	}
	q.absentAfter = section.Duration("absentAfter", connector.Absence(s.timeout), time.Millisecond, longestAbsence)
	if fault := mutationFault(method.Name); fault != "" {
		section.RefuseName(method, "%s", fault)
		return
	}
	s.reconcile[method.Name] = q
}

func mutationFault(method string) string {
	known := mutations()
	if slices.Contains(known, method) {
		return ""
	}
	return "there is no mutation " + connector.Quote(method) + ". " + connector.Suggest(method, known, "The mutations are "+strings.Join(known, ", ")+".")
}

// readTemplate reads a path with placeholders, and tries it out.
func (s *Service) readTemplate(section *connector.Settings, field connector.Field) template {
	parsed, fault := parseTemplate(field.Value)
	if fault == "" && s.base != nil {
		if _, err := s.target(parsed.fill(func(part) string { return "x" }), nil); err != nil {
			fault = err.Error()
		}
	}
	if fault != "" {
		section.Refuse(field, "%s", fault)
	}
	return parsed
}

func (s *Service) readTest(section *connector.Settings) {
	field, ok := section.Plain("get")
	if !ok {
		return
	}
	s.probe = field.Value
	if s.base == nil {
		return
	}
	if _, err := s.target(s.probe, nil); err != nil {
		section.Refuse(field, "%s", err)
	}
}
