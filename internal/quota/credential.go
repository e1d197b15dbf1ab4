package quota

import (
	"net/http"
	"net/url"
)

// secret is a value that must not be told. Being a function, it cannot be
// printed or encoded by whoever holds it, however deep.
type secret func() string

func keep(value string) secret { return func() string { return value } }

// credential is what a provider's calls are authorised with.
type credential struct {
	header string // of the API key; empty if it is sent as a parameter
	param  string // of the API key
	user   secret // name or client id
	value  secret // API key, token, password or client secret

	tokenURL     string // OAuth2 only, as are the rest
	scope        string
	secretInBody bool // the client proves itself in the form, not in a header
}

// apply puts a fixed credential on a request.
func (p Provider) apply(req *http.Request) {
	c := p.credential
	switch p.Auth {
	case AuthAPIKey:
		if c.header != "" {
			req.Header.Set(c.header, c.value())
			return
		}
		req.URL = withParam(req.URL, c.param, c.value())
	case AuthBearer:
		req.Header.Set("Authorization", "Bearer "+c.value())
	case AuthBasic:
		req.SetBasicAuth(c.user(), c.value())
	case AuthNone, AuthOAuth2:
	}
}

// withParam is the URL with one more parameter; the others keep their order
// and spelling, unless the parameter is among them and is replaced.
func withParam(u *url.URL, name, value string) *url.URL {
	changed := *u
	query := u.Query()
	if query.Has(name) {
		query.Set(name, value)
		changed.RawQuery = query.Encode()
		return &changed
	}
	if changed.RawQuery != "" {
		changed.RawQuery += "&"
	}
	changed.RawQuery += url.QueryEscape(name) + "=" + url.QueryEscape(value)
	return &changed
}
