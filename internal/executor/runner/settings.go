package runner

import (
	"net/http"
	"net/url"
	"slices"

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

// Headers are the headers that go with every request. The header of the
// caller's key is not among them.
func Headers(s *connector.Settings, written definition.Secrets, caller CallerKey) http.Header {
	return s.Headers(written, func(name string) string {
		switch name = http.CanonicalHeaderKey(name); {
		case slices.Contains(ownHeaders(), name):
			return "is set by Pawl"
		case name == caller.header:
			return "is that of callerKey; keep one of them, or name another header there"
		}
		return ""
	})
}

// GraphName notes a fault if a graph of the settings cannot be called by this
// name.
func GraphName(s *connector.Settings, name string) {
	if _, _, err := contract.ParseGraphID("provider:" + name); err != nil {
		s.AddName("/graphs"+definition.Pointer(name), "the graph %s must begin with a letter or digit and have letters, digits, _, - and . only", pawl.Quote(name))
	}
}
