package runner

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// ReadURL reads a field that is the address of a server. It is not ok, and the
// fault is noted, if it cannot be called.
func ReadURL(s *connector.Settings, name string) (u *url.URL, ok bool) {
	field, ok := s.OneOf(name)
	if !ok {
		return nil, false
	}
	u, err := url.Parse(field.Value)
	fault := ""
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		fault = "must begin with https:// or http:// and name a host"
	case u.User != nil:
		fault = "holds a user name or password; put credentials into headers"
	case u.Fragment != "":
		fault = "has a #"
	case s.Env().HTTP == nil && !s.Env().CheckOnly:
		fault = "cannot be called here"
	}
	if fault != "" {
		s.Refuse(field, "%s %s %s", name, connector.Quote(field.Written), fault)
		return nil, false
	}
	return u, true
}

// ownHeaders are those that Pawl sets.
func ownHeaders() []string {
	return []string{"Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Last-Event-Id", "Transfer-Encoding", "Upgrade"}
}

func isHeaderName(name string) bool {
	return regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(name)
}

// ReadHeaders reads the headers that go with every request. Their values are
// secrets, so faults tell the names only. The header of the caller's key is not
// among them.
func ReadHeaders(s *connector.Settings, caller CallerKey) http.Header {
	headers := http.Header{}
	for _, field := range s.SecretMapping("headers") {
		name := http.CanonicalHeaderKey(field.Name)
		switch {
		case !isHeaderName(field.Name):
			s.RefuseName(field, "%s is not the name of a header", connector.Quote(field.Name))
		case slices.Contains(ownHeaders(), name):
			s.RefuseName(field, "the header %s is set by Pawl", field.Name)
		case name == caller.header:
			s.RefuseName(field, "the header %s is that of callerKey; keep one of them, or name another header there", field.Name)
		case strings.ContainsFunc(field.Value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }):
			s.Refuse(field, "the value of the header %s holds a line break or another control character", field.Name)
		default:
			headers.Set(field.Name, field.Value)
		}
	}
	return headers
}

// GraphName notes a fault if a graph cannot be called by this name.
func GraphName(s *connector.Settings, name connector.Field) {
	if _, _, err := contract.ParseGraphID("provider:" + name.Name); err != nil {
		s.RefuseName(name, "the graph %s must begin with a letter or digit and have letters, digits, _, - and . only", connector.Quote(name.Name))
	}
}
