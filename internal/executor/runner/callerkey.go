package runner

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// CallerKey says in which header the key of the caller goes with requests. The
// zero value means that it does not go anywhere.
type CallerKey struct {
	header, prefix string
}

// ReadCallerKey reads the optional setting of an executor that calls others:
//
//	callerKey: {header: X-Api-Key, prefix: ""}
//
// Without a header it is Authorization, whose prefix is "Bearer " unless
// another one is given; other headers have none.
func ReadCallerKey(s *connector.Settings) (c CallerKey) {
	s.Section("callerKey", func(section *connector.Settings) {
		header := section.Text("header", "Authorization")
		usual := ""
		if http.CanonicalHeaderKey(header.Value) == "Authorization" {
			usual = "Bearer "
		}
		prefix := section.Text("prefix", usual)
		switch {
		case !isHeaderName(header.Value):
			section.Refuse(header, "%s is not the name of a header", connector.Quote(header.Value))
		case slices.Contains(append(ownHeaders(), "Accept"), http.CanonicalHeaderKey(header.Value)):
			section.Refuse(header, "the header %s is set by Pawl", header.Value)
		case strings.ContainsFunc(prefix.Value, unicode.IsControl):
			section.Refuse(prefix, "prefix holds a line break or another control character")
		case strings.Contains(prefix.Value, "${"):
			section.Refuse(prefix, "prefix is sent as it is; put secrets into headers")
		default:
			c = CallerKey{header: http.CanonicalHeaderKey(header.Value), prefix: prefix.Value}
		}
	})
	return c
}

// Put adds the key to the headers of a request. A caller without a key has
// nothing to add.
func (c CallerKey) Put(h http.Header, k Key) {
	if c.header != "" && !k.IsZero() {
		h.Set(c.header, c.prefix+k.Reveal())
	}
}
