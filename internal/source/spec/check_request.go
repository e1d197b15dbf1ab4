package spec

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
)

const providerHint = "definitions are stored and shown, so they hold no credentials: give it to the server in a provider file (kind: provider) for the domain"

// request checks what is sent.
func (c checker) request() {
	c.url()
	for i, pair := range c.d.Params {
		c.param(definition.Pointer("params", i), pair)
	}
	for i, pair := range c.d.Headers {
		c.header(definition.Pointer("headers", i), pair)
	}
}

func (c checker) url() {
	u, err := url.Parse(c.d.URL)
	switch {
	case strings.Contains(c.d.URL, "${"):
		c.add("/url", "${...} is not replaced here; %s", providerHint)
	case err != nil || strings.ContainsFunc(c.d.URL, unicode.IsSpace):
		c.add("/url", "this is not a URL such as https://api.example.com/v1/prices") // what is wrong may be a secret
	case u.Scheme != "http" && u.Scheme != "https":
		c.add("/url", "the URL must begin with https:// or http://")
	case c.d.Host() == "":
		c.add("/url", "the URL has no host")
	case u.User != nil:
		c.add("/url", "the URL has a user name or a password; %s", providerHint)
	case u.Fragment != "":
		c.add("/url", "the URL has a fragment (#...), which is never sent")
	default:
		c.query(u.RawQuery)
	}
}

func (c checker) query(raw string) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		c.add("/url", "the query of the URL cannot be read; use params")
		return
	}
	for name, list := range values {
		for _, value := range list {
			if isCredential(name, value) {
				c.add("/url", "the parameter %s of the URL looks like a credential; %s", pawl.Quote(name), providerHint)
			}
		}
	}
}

func (c checker) param(pointer string, pair Pair) {
	c.text(pointer+"/value", pair.Value, longestText)
	c.secret(pointer, pair)
}

func (c checker) secret(pointer string, pair Pair) {
	switch {
	case isCredential(pair.Name, pair.Value):
		c.add(pointer+"/name", "%s looks like a credential; %s", pawl.Quote(pair.Name), providerHint)
	case strings.Contains(pair.Value, "${"):
		c.add(pointer+"/value", "${...} is not replaced here; %s", providerHint)
	}
}

func (c checker) header(pointer string, pair Pair) {
	name := http.CanonicalHeaderKey(pair.Name)
	switch {
	case !outbound.IsHeaderName(pair.Name):
		c.add(pointer+"/name", "%s is not the name of a header", pawl.Quote(pair.Name))
	case slices.Contains(ownHeaders(), name) || strings.HasPrefix(name, "Proxy-"):
		c.add(pointer+"/name", "%s is set by Pawl for each connection, and cannot be set here", name)
	}
	switch {
	case len(pair.Value) > longestText:
		c.add(pointer+"/value", "the value has %d bytes; at most %d are allowed", len(pair.Value), longestText)
	case strings.ContainsFunc(pair.Value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) || strings.TrimSpace(pair.Value) != pair.Value:
		c.add(pointer+"/value", "the value of a header is ASCII text without line breaks, and without spaces around it")
	}
	c.secret(pointer, pair)
}

// ownHeaders belong to the connection, or decide how the body is read.
func ownHeaders() []string {
	return []string{
		"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}
}

// isCredential reports whether a parameter or header is one by its name. A
// plain "key" is one if its value is long: many names of things are keys, too.
func isCredential(name, value string) bool {
	bare := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(name))
	switch strings.TrimPrefix(bare, "x") {
	case "token", "accesstoken", "authtoken", "refreshtoken", "idtoken", "bearer", "bearertoken",
		"auth", "cookie", "passwd", "pwd", "credential", "credentials", "sessionid", "accesskey", "subscriptionkey":
		return true
	case "key":
		return len(value) >= 16
	}
	for _, part := range []string{"apikey", "secret", "password", "authorization", "subscriptionkey", "privatekey"} {
		if strings.Contains(bare, part) {
			return true
		}
	}
	return false
}
