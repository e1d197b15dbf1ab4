package quota

import (
	"net/url"
	"strings"
)

// Domain is the name under which calls to a URL are booked: its host in lower
// case, with the port unless that is 80 or 443.
func Domain(u *url.URL) string { return normal(u.Host) }

// normal writes a host as a domain. What is no host comes out in lower case.
func normal(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443", ":"} {
		bare, has := strings.CutSuffix(host, port)
		bracketed := strings.HasSuffix(bare, "]")
		if has && (bracketed || !strings.Contains(bare, ":")) {
			host = bare
			break
		}
	}
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && !strings.HasPrefix(host, "[") {
		return strings.TrimSuffix(name, ".") + ":" + port
	}
	return strings.TrimSuffix(host, ".")
}
