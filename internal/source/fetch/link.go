package fetch

import (
	"net/http"
	"net/url"
	"strings"
)

// keepHome returns a link of an answer if it stays on the host of the source:
// credentials must not travel. Servers behind a proxy often write http for
// what is https; such a link is mended.
func keepHome(home, link *url.URL) (*url.URL, error) {
	if link.Scheme != "http" && link.Scheme != "https" {
		return nil, faultf(CodeRedirect, "%s: the link to the next page is neither http nor https", home.Host)
	}
	if link.User != nil {
		return nil, faultf(CodeRedirect, "%s: the link to the next page has a user name in it", home.Host)
	}
	kept := *link
	kept.Fragment = ""
	if home.Scheme == "https" && link.Scheme == "http" && (link.Port() == "" || link.Port() == "80") {
		kept.Scheme, kept.Host = "https", link.Hostname()
		if strings.Contains(kept.Host, ":") {
			kept.Host = "[" + kept.Host + "]"
		}
	}
	if kept.Scheme != home.Scheme || !strings.EqualFold(kept.Hostname(), home.Hostname()) || portOf(&kept) != portOf(home) {
		e := faultf(CodeRedirect, "%s: the link to the next page leads to another host (%s)", home.Host, shortHost(link.Host))
		e.Hint = "credentials must not travel: set the url of the source to the host of the links"
		return nil, e
	}
	return &kept, nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func shortHost(host string) string {
	if len(host) > 100 {
		return host[:100] + "..."
	}
	return host
}

// withoutCredentials removes from a link what the book added to the request
// that it answers: servers repeat the query in their links, and a position is
// stored.
func withoutCredentials(link, plain, sent *url.URL) *url.URL {
	before, after, query := plain.Query(), sent.Query(), link.Query()
	removed := false
	for name := range after {
		if !before.Has(name) && query.Has(name) {
			query.Del(name)
			removed = true
		}
	}
	if !removed {
		return link
	}
	clean := *link
	clean.RawQuery = query.Encode()
	return &clean
}

// linkFrom finds the link to the next page in a header: the one with rel=next
// in a header like Link, or the value itself in a header that holds a URL.
func linkFrom(h http.Header, name string) string {
	values := h.Values(name)
	for _, value := range values {
		if next := nextOf(value); next != "" {
			return next
		}
	}
	if len(values) > 0 && !strings.ContainsAny(values[0], "<>;") {
		return strings.TrimSpace(values[0])
	}
	return ""
}

// nextOf reads a list of links as RFC 8288 writes it:
// <https://a/b?page=2>; rel="next", <...>; rel="last".
func nextOf(value string) string {
	for {
		_, rest, found := strings.Cut(value, "<")
		if !found {
			return ""
		}
		link, rest, found := strings.Cut(rest, ">")
		if !found {
			return ""
		}
		var params string
		params, value = cutList(rest)
		if isNext(params) {
			return strings.TrimSpace(link)
		}
	}
}

// cutList cuts at the first comma that is not within quotes.
func cutList(text string) (first, rest string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ',' && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// isNext looks for rel=next among the parameters of a link; rel may hold
// several words.
func isNext(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		for word := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `"`)) {
			if strings.EqualFold(word, "next") {
				return true
			}
		}
	}
	return false
}
