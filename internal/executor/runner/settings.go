package runner

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// ParseURL reads the address of a server that is in a field of the settings. It
// is nil, and the fault is noted, if it cannot be called.
func ParseURL(s *connector.Settings, field definition.Secret) *url.URL {
	if field.Value == "" {
		return nil // which is a fault of its own
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
	case s.HTTP == nil && !s.CheckOnly:
		fault = "cannot be called here"
	}
	if fault != "" {
		s.Add(field.Pointer, "url %s %s", pawl.Quote(field.Written), fault)
		return nil
	}
	return u
}

// ownHeaders are those that Pawl sets.
func ownHeaders() []string {
	return []string{"Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Last-Event-Id", "Transfer-Encoding", "Upgrade"}
}

func isHeaderName(name string) bool {
	return regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(name)
}

// Headers are the headers that go with every request. Their values are
// secrets, so faults tell the names only. The header of the caller's key is not
// among them.
func Headers(s *connector.Settings, written definition.Secrets, caller CallerKey) http.Header {
	headers := http.Header{}
	for _, field := range written {
		name := http.CanonicalHeaderKey(field.Name)
		switch {
		case !isHeaderName(field.Name):
			s.AddName(field.Pointer, "%s is not the name of a header", pawl.Quote(field.Name))
		case slices.Contains(ownHeaders(), name):
			s.AddName(field.Pointer, "the header %s is set by Pawl", field.Name)
		case name == caller.header:
			s.AddName(field.Pointer, "the header %s is that of callerKey; keep one of them, or name another header there", field.Name)
		case strings.ContainsFunc(field.Value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }):
			s.Add(field.Pointer, "the value of the header %s holds a line break or another control character", field.Name)
		default:
			headers.Set(field.Name, field.Value)
		}
	}
	return headers
}

// GraphName notes a fault if a graph of the settings cannot be called by this
// name.
func GraphName(s *connector.Settings, name string) {
	if _, _, err := contract.ParseGraphID("provider:" + name); err != nil {
		s.AddName("/graphs"+definition.Pointer(name), "the graph %s must begin with a letter or digit and have letters, digits, _, - and . only", pawl.Quote(name))
	}
}
