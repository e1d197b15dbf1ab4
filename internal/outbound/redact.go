package outbound

import (
	"net/url"
	"strings"
)

const hidden = "***"

// Redact writes a URL for logs: without userinfo and fragment, and with the
// values of the query hidden. The path is kept, so a URL whose path is the
// secret must not be logged at all.
func Redact(u *url.URL) string {
	if u == nil {
		return ""
	}
	if u.Opaque != "" {
		return u.Scheme + ":" + hidden
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: redactQuery(u.RawQuery)}
	return shown.String()
}

// redactQuery keeps the names in their order. A part without a name is hidden
// whole, because it may be a bare key.
func redactQuery(query string) string {
	if query == "" {
		return ""
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		if name, _, named := strings.Cut(part, "="); named {
			parts[i] = name + "=" + hidden
		} else {
			parts[i] = hidden
		}
	}
	return strings.Join(parts, "&")
}
