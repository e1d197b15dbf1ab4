package runner

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// CallerKey says in which header the key of the caller goes with requests. The
// zero value means that it does not go anywhere.
type CallerKey struct {
	header, prefix string
}

// WrittenCallerKey is the optional setting of an executor that calls others:
//
//	callerKey: {header: X-Api-Key, prefix: ""}
//
// Without a header it is Authorization, whose prefix is "Bearer " unless
// another one is given; other headers have none.
type WrittenCallerKey struct {
	Header string  `json:"header" definition:"default=Authorization"`
	Prefix *string `json:"prefix"`
}

// CallerKey reads the setting callerKey; nil is the zero value.
func (w *WrittenCallerKey) CallerKey(s *connector.Settings) CallerKey {
	if w == nil {
		return CallerKey{}
	}
	c := CallerKey{header: http.CanonicalHeaderKey(w.Header)}
	switch {
	case w.Prefix != nil:
		c.prefix = *w.Prefix
	case c.header == "Authorization":
		c.prefix = "Bearer "
	}
	switch {
	case !outbound.IsHeaderName(w.Header):
		s.Add("/callerKey/header", "%s is not the name of a header", pawl.Quote(w.Header))
	case slices.Contains(append(ownHeaders(), "Accept"), c.header):
		s.Add("/callerKey/header", "the header %s is set by Pawl", w.Header)
	case strings.ContainsFunc(c.prefix, unicode.IsControl):
		s.Add("/callerKey/prefix", "prefix holds a line break or another control character")
	case strings.Contains(c.prefix, "${"):
		s.Add("/callerKey/prefix", "prefix is sent as it is; put secrets into headers")
	default:
		return c
	}
	return CallerKey{}
}

// Put adds the key to the headers of a request. A caller without a key has
// nothing to add.
func (c CallerKey) Put(h http.Header, k Key) {
	if c.header != "" && !k.IsZero() {
		h.Set(c.header, c.prefix+k.Reveal())
	}
}
