package httptool

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of the headers of a call.
const (
	mostHeaders   = 64
	longestHeader = 8 << 10 // bytes of a value
)

// canonical is one spelling of the name of a header. Many servers take _ and -
// for the same.
func canonical(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

// isOwn reports whether a header is for the host alone to set.
func isOwn(name string) bool {
	return slices.Contains([]string{
		"connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection",
		"te", "trailer", "transfer-encoding", "upgrade",
	}, canonical(name))
}

// isCredential reports whether a header says who is asking.
func isCredential(name string) bool {
	return slices.Contains([]string{"authorization", "cookie"}, canonical(name))
}

// isOverride reports whether a header makes servers do another method than
// that of the request: a read would become a mutation.
func isOverride(name string) bool {
	return slices.Contains([]string{"x-http-method", "x-http-method-override", "x-method-override"}, canonical(name))
}

// scriptHeaders are the headers that a script may send.
func (s *Service) scriptHeaders(given map[string]*string) (http.Header, error) {
	const hint = "The credentials of a connection are in its definition."
	headers := http.Header{}
	if len(given) > mostHeaders {
		return nil, connector.BadArguments("", "there are more than %d headers", mostHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		switch {
		case !outbound.IsHeaderName(name):
			return nil, connector.BadArguments("", "%s is not the name of a header", pawl.Quote(name))
		case isOwn(name) || isOverride(name) || s.isKeyHeader(name):
			return nil, connector.BadArguments("", "the header %s cannot be set by a script", name)
		case isCredential(name) || s.isDefined(name):
			return nil, connector.BadArguments(hint, "the header %s cannot be set by a script", name)
		case headers.Get(name) != "":
			return nil, connector.BadArguments("", "the header %s is there twice", name)
		case value == nil:
			continue
		case len(*value) > longestHeader || !outbound.IsHeaderValue(*value):
			return nil, connector.BadArguments("", "the value of the header %s is too long, or has control characters", name)
		}
		headers.Set(name, *value)
	}
	return headers, nil
}

// headersWith are the headers of a request: those of the definition, those of
// the script, none of which is one of the former, and what is usual.
func (s *Service) headersWith(script http.Header) http.Header {
	all := s.headers.Clone()
	maps.Copy(all, script)
	if all.Get("Accept") == "" {
		all.Set("Accept", "application/json, */*;q=0.5")
	}
	return all
}

func (s *Service) isKeyHeader(name string) bool {
	return canonical(name) == canonical(s.idempotencyHeader) || canonical(name) == canonical(defaultIdempotencyHeader)
}

func (s *Service) isDefined(name string) bool {
	for defined := range s.headers {
		if canonical(defined) == canonical(name) {
			return true
		}
	}
	return false
}

// shownHeaders are the headers of an answer that scripts get, with names in
// lower case. An allow list is the only safe one: any name may carry a key.
func shownHeaders(answer http.Header) map[string]string {
	harmless := []string{
		"cache-control", "content-language", "content-location", "content-range", "content-type", "date", "etag", "expires",
		"last-modified", "link", "location", "request-id", "retry-after", "x-correlation-id", "x-request-id",
		"x-next-page", "x-page", "x-per-page", "x-total", "x-total-count", "x-total-pages",
	}
	shown := map[string]string{}
	for name, values := range answer {
		name = strings.ToLower(name)
		limits := strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "x-ratelimit-") || strings.HasPrefix(name, "x-rate-limit-")
		if limits || slices.Contains(harmless, name) {
			shown[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
		}
	}
	return shown
}
