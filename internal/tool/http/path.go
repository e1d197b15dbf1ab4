package httptool

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of what is called, in bytes.
const (
	longestPath = 4 << 10
	longestURL  = 16 << 10
)

// target is the URL of a path below the base URL, with the query that the
// path has and the one beside it.
func (s *Service) target(given string, query map[string]json.RawMessage) (*url.URL, error) {
	path, inline, _ := strings.Cut(given, "?")
	values, err := url.ParseQuery(inline)
	if err != nil {
		return nil, badPath(given, "what follows ? is not a query")
	}
	if fault := pathFault(path); fault != "" {
		return nil, badPath(given, fault)
	}
	if err := addQuery(values, query); err != nil {
		return nil, err
	}
	root := s.base.Scheme + "://" + s.base.Host
	whole := s.base.EscapedPath()
	if path != "" {
		whole = strings.TrimRight(whole, "/") + "/" + strings.TrimPrefix(path, "/")
	}
	u, err := url.Parse(root + whole)
	if err != nil || u.Host != s.base.Host || u.User != nil {
		return nil, badPath(given, "it is not a path of a URL")
	}
	u.RawQuery = values.Encode()
	if len(u.String()) > longestURL {
		return nil, connector.BadArguments("", "the path and the query have more than %d bytes", longestURL)
	}
	return u, nil
}

func badPath(given, fault string) *connector.Error {
	return connector.BadArguments("A path looks like /orders/7 and is below the base URL of the connection.", "the path %s cannot be used: %s", pawl.Quote(given), fault)
}

// pathFault is why a path, without its query, cannot be used, or empty.
func pathFault(path string) string {
	switch {
	case len(path) > longestPath:
		return "it is too long"
	case !utf8.ValidString(path):
		return "it is not UTF-8 text"
	case strings.HasPrefix(path, "//"):
		return "it names a host"
	case regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`).MatchString(path):
		return "it has a scheme; begin it with /"
	case strings.Contains(path, "#"):
		return "it has a #; write %23"
	}
	if _, err := url.PathUnescape(path); err != nil {
		return "it has a % that is not an escape; write %25"
	}
	if climbs(path) {
		return "it has . or .. as a name, a \\, or control characters"
	}
	return ""
}

// climbs reports whether a server could take a path for one that leads out of
// where it begins. Servers differ in what they undo first, so every depth of
// escapes is looked at.
func climbs(path string) bool {
	const deepest = 8 // nobody escapes that often by accident
	for range deepest {
		if hasTraps(path) {
			return true
		}
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			return false
		}
		path = plain
	}
	return true
}

func hasTraps(path string) bool {
	if strings.Contains(path, `\`) || strings.ContainsFunc(path, unicode.IsControl) {
		return true
	}
	return slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool {
		name, _, _ = strings.Cut(name, ";") // some servers cut parameters off
		return name == "." || name == ".."
	})
}

// addQuery adds the query of a call: an object of texts, numbers, booleans,
// and lists of these. What is null is left out.
func addQuery(values url.Values, query map[string]json.RawMessage) error {
	for name, raw := range query {
		var list []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, element := range list {
			if string(element) == "null" {
				continue
			}
			text, ok := scalar(element)
			if !ok {
				return connector.BadArguments("Values are texts, numbers, booleans, or lists of these.", "query: the value of %s cannot be sent", pawl.Quote(name))
			}
			values.Add(name, text)
		}
	}
	return nil
}

// scalar is the text of a JSON text, number or boolean.
func scalar(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		err := json.Unmarshal(raw, &text)
		return text, err == nil
	case '{', '[', 'n':
		return "", false
	}
	return string(raw), true
}
