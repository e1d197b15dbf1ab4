package quota

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

const (
	longestPeriod = 366 * 24 * time.Hour
	defaultHeader = "X-Api-Key"
	headerPattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"
)

// written is a provider as people write it.
type written struct {
	Domain       definition.Secret `json:"domain" definition:"required" doc:"The host of the URLs, with the port unless that is 80 or 443."`
	Limit        int               `json:"limit" definition:"min=1,max=1000000000" doc:"How many calls there may be in a period."`
	Period       string            `json:"period" pattern:"^[0-9]{1,9}[smhd]$" doc:"How long a window is, from its first call on: a number of s, m, h or d, at most 366d."`
	APIKey       definition.Secret `json:"apiKey" definition:"also=api_key" doc:"A secret, as ${ENV_NAME} or file:PATH."`
	APIKeyParam  string            `json:"apiKeyParam" definition:"also=api_key_param,min=1" doc:"The parameter of the query that the key is sent in."`
	APIKeyHeader string            `json:"apiKeyHeader" definition:"also=api_key_header" doc:"The header that the key is sent in; X-Api-Key if neither a header nor a parameter is given."`
	Auth         *writtenAuth      `json:"auth"`
}

type writtenAuth struct {
	Type         string            `json:"type" definition:"required,oneof=bearer|basic|oauth2"`
	Token        definition.Secret `json:"token" doc:"A secret, as ${ENV_NAME} or file:PATH."`
	Username     definition.Secret `json:"username"`
	Password     definition.Secret `json:"password" doc:"A secret, as ${ENV_NAME} or file:PATH."`
	TokenURL     definition.Secret `json:"tokenUrl"`
	ClientID     definition.Secret `json:"clientId"`
	ClientSecret definition.Secret `json:"clientSecret" doc:"A secret, as ${ENV_NAME} or file:PATH."`
	ClientAuth   string            `json:"clientAuth" definition:"oneof=header|body" doc:"Where the client proves itself: in a header, as the standard prefers, or in the form."`
	Scope        definition.Secret `json:"scope"`
}

// authFields are those of each type of auth.
func authFields() map[Auth][]string {
	return map[Auth][]string{
		AuthBearer: {"token"},
		AuthBasic:  {"username", "password"},
		AuthOAuth2: {"tokenUrl", "clientId", "clientSecret", "clientAuth", "scope"},
	}
}

// reading is one definition on its way to a provider.
type reading struct {
	*definition.Reading
	written written
}

// readProvider makes a provider of its definition, or tells all its faults.
func readProvider(doc definition.Document) (Provider, []pawl.Field) {
	r := reading{Reading: doc.Open()}
	r.Read(&r.written)
	r.Unknown()
	p := Provider{Domain: r.domain(), Place: doc.Place("/domain").String()}
	p.Limit, p.Period = r.limit()
	switch {
	case r.Has("/auth") && (r.Has("/apiKey") || r.Has("/api_key")):
		r.Add("/auth", "auth and apiKey exclude each other: keep one of them")
	case r.written.Auth != nil:
		p.Auth, p.credential = r.auth(*r.written.Auth)
	default:
		p.Auth, p.credential = r.apiKey()
	}
	return p, r.Fields()
}

// spelled is the pointer of a field in the spelling that was used.
func (r reading) spelled(pointers ...string) string {
	if i := slices.IndexFunc(pointers, r.Has); i >= 0 {
		return pointers[i]
	}
	return pointers[0]
}

// value is what a text stands for, which must be there and fit into a header.
func (r reading) value(pointer string, text definition.Secret) string {
	name := pointer[strings.LastIndex(pointer, "/")+1:]
	switch {
	case !r.Has(pointer):
		r.Add(pointer, "%s is missing", name)
	case strings.ContainsFunc(text.Value, unicode.IsControl):
		r.Add(pointer, "%s holds a line break or another control character", name)
	}
	return text.Value
}

func (r reading) domain() string {
	if !r.Has("/domain") || r.At("/domain") {
		return ""
	}
	domain := normal(strings.TrimSpace(r.value("/domain", r.written.Domain)))
	if !isDomain(domain) {
		r.Add("/domain", "domain %s must be the host of the URLs alone, such as api.example.com or localhost:8080", pawl.Quote(r.written.Domain.Written))
	}
	return domain
}

// isDomain reports whether a text is a host, perhaps with a port.
func isDomain(text string) bool {
	u, err := url.Parse("//" + text)
	plain := regexp.MustCompile(`^([a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)
	return err == nil && u.Host == text && plain.MatchString(text) && len(text) <= 255 && !strings.Contains(text, "..")
}

func (r reading) limit() (int, time.Duration) {
	hasLimit, hasPeriod := r.Has("/limit"), r.Has("/period")
	switch {
	case !hasLimit && !hasPeriod:
		return 0, 0
	case !hasPeriod:
		r.Add("/period", "period is missing: it says in which time there may be so many calls, such as 1m")
	case !hasLimit:
		r.Add("/limit", "limit is missing: it says how many calls there may be in a period")
	}
	period, ok := parsePeriod(r.written.Period)
	if hasPeriod && !ok {
		r.Add("/period", "period %s must be a number of s, m, h or d, such as 30s or 1d, and at most 366d", pawl.Quote(r.written.Period))
	}
	return r.written.Limit, period
}

// parsePeriod reads Ns, Nm, Nh or Nd.
func parsePeriod(text string) (time.Duration, bool) {
	for _, u := range periodUnits() {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok || !regexp.MustCompile(`^[0-9]{1,9}$`).MatchString(digits) {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		inRange := err == nil && n > 0 && n <= int64(longestPeriod/u.length)
		return time.Duration(n) * u.length, inRange
	}
	return 0, false
}

func (r reading) apiKey() (Auth, *credential) {
	key := r.spelled("/apiKey", "/api_key")
	param, header := r.spelled("/apiKeyParam", "/api_key_param"), r.spelled("/apiKeyHeader", "/api_key_header")
	switch {
	case r.Has(param) && r.Has(header):
		r.Add(header, "apiKeyParam and apiKeyHeader exclude each other: keep one of them")
	case !r.Has(key) && (r.Has(param) || r.Has(header)):
		r.Add(key, "apiKey is missing")
	}
	if !r.Has(key) {
		return AuthNone, nil
	}
	c := &credential{value: keep(r.value(key, r.written.APIKey)), param: r.written.APIKeyParam, header: r.written.APIKeyHeader}
	switch {
	case r.Has(param):
		if strings.TrimSpace(c.param) == "" || strings.ContainsFunc(c.param, unicode.IsControl) {
			r.Add(param, "apiKeyParam must be the name of a parameter")
		}
	case !r.Has(header):
		c.header = defaultHeader
	case !isHeader(c.header):
		r.Add(header, "%s cannot be the header of a key", pawl.Quote(c.header))
	}
	return AuthAPIKey, c
}

// isHeader reports whether a key may be sent in a header of this name: one
// that has no meaning for the transport.
func isHeader(name string) bool {
	taken := []string{"Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Keep-Alive", "Expect", "Proxy-Connection"}
	return regexp.MustCompile(headerPattern).MatchString(name) && !slices.Contains(taken, http.CanonicalHeaderKey(name))
}

func (r reading) auth(w writtenAuth) (Auth, *credential) {
	r.unrelated(w)
	c := &credential{}
	switch Auth(w.Type) {
	case AuthBearer:
		c.value = keep(r.value("/auth/token", w.Token))
	case AuthBasic:
		c.user, c.value = keep(r.value("/auth/username", w.Username)), keep(r.value("/auth/password", w.Password))
		if strings.Contains(c.user(), ":") {
			r.Add("/auth/username", "username must not hold a colon")
		}
	case AuthOAuth2:
		r.oauth2(w, c)
	case AuthNone, AuthAPIKey:
	}
	return Auth(w.Type), c
}

func (r reading) oauth2(w writtenAuth, c *credential) {
	c.user, c.value = keep(r.value("/auth/clientId", w.ClientID)), keep(r.value("/auth/clientSecret", w.ClientSecret))
	c.secretInBody = w.ClientAuth == "body"
	c.tokenURL = r.value("/auth/tokenUrl", w.TokenURL)
	if u, err := url.Parse(c.tokenURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" {
		r.Add("/auth/tokenUrl", "tokenUrl must be a URL that begins with https:// or http:// and holds no user name and no #")
	}
	if r.Has("/auth/scope") {
		c.scope = r.value("/auth/scope", w.Scope)
	}
}

// unrelated refuses fields that another type of auth has.
func (r reading) unrelated(w writtenAuth) {
	fields := authFields()
	if fields[Auth(w.Type)] == nil {
		return // which is a fault of its own
	}
	for _, of := range []Auth{AuthBearer, AuthBasic, AuthOAuth2} {
		for _, name := range fields[of] {
			if of != Auth(w.Type) && r.Has("/auth/"+name) {
				r.Add("/auth/"+name, "%s is for the type %s", name, of)
			}
		}
	}
}
