package httptool

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of arguments, in bytes. A text can be six times as long in JSON.
const (
	largestSent      = 4 << 20
	largestArguments = 6*largestSent + 64<<10
)

// arguments are those of every method.
type arguments struct {
	Path    *string                    `json:"path"`
	Query   map[string]json.RawMessage `json:"query"`
	Headers map[string]*string         `json:"headers"`
	Body    json.RawMessage            `json:"body"`
}

func decodeArguments(raw json.RawMessage) (arguments, error) {
	var a arguments
	err := connector.DecodeArguments(raw, largestArguments, &a)
	return a, err
}

// request is what is sent, checked.
type request struct {
	effect outbound.Effect
	verb   string
	url    *url.URL
	header http.Header
	body   []byte // nil if there is none
}

// newRequest makes the request of a call, but for its key.
func (s *Service) newRequest(method string, a arguments) (request, error) {
	path := ""
	if a.Path != nil {
		path = *a.Path
	}
	target, err := s.target(path, a.Query)
	if err != nil {
		return request{}, err
	}
	r := request{effect: effectOf(method), verb: strings.ToUpper(method), url: target}
	script, err := s.scriptHeaders(a.Headers)
	if err != nil {
		return request{}, err
	}
	r.header = s.headersWith(script)
	return r, r.setBody(a.Body)
}

// newQuestion is the request of a GET that no script asks for.
func (s *Service) newQuestion(target *url.URL) request {
	return request{effect: outbound.Read, verb: http.MethodGet, url: target, header: s.headersWith(nil)}
}

// setBody puts the body of a call into the request: a value as JSON, or a text
// as what its content type says.
func (r *request) setBody(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	contentType := r.header.Get("Content-Type")
	isText := raw[0] == '"'
	switch {
	case r.effect == outbound.Read:
		return connector.BadArguments("Use query, or a method that takes a body.", "%s sends no body", strings.ToLower(r.verb))
	case isText && contentType == "":
		return connector.BadArguments("Give the body as an object, or say what it is with a content-type header.", "the body is a text of unknown type")
	case isText:
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return connector.BadArguments("", "the body cannot be read")
		}
		r.body = []byte(text)
	case contentType == "":
		r.header.Set("Content-Type", "application/json")
		r.body = compact(raw)
	case !isJSON(contentType):
		return connector.BadArguments("", "a body of the type %s must be a text", pawl.Quote(contentType))
	default:
		r.body = compact(raw)
	}
	if len(r.body) > largestSent {
		return connector.BadArguments("Split it into several calls.", "the body has %d bytes, more than the %d allowed", len(r.body), largestSent)
	}
	return nil
}

// compact is a JSON value without spaces.
func compact(raw json.RawMessage) []byte {
	var text bytes.Buffer
	_ = json.Compact(&text, raw) // it was decoded, so it is JSON
	return text.Bytes()
}

// isJSON reports whether a content type is JSON or written in it.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	return media == "application/json" || strings.HasSuffix(media, "+json")
}
