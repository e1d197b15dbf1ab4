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
	mostLimit     = 1_000_000_000 // calls in a period
	longestPeriod = 366 * 24 * time.Hour
	defaultHeader = "X-Api-Key"
)

// written is a provider as people write it.
type written struct {
	Domain       string       `json:"domain" definition:"required"`
	Limit        int          `json:"limit"`
	Period       string       `json:"period"`
	APIKey       string       `json:"apiKey" definition:"also=api_key"`
	APIKeyParam  string       `json:"apiKeyParam" definition:"also=api_key_param"`
	APIKeyHeader string       `json:"apiKeyHeader" definition:"also=api_key_header"`
	Auth         *writtenAuth `json:"auth"`
}

type writtenAuth struct {
	Type         string `json:"type" definition:"required,oneof=bearer|basic|oauth2"`
	Token        string `json:"token"`
	Username     string `json:"username"`
	Password     string `json:"password"`
	TokenURL     string `json:"tokenUrl"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	ClientAuth   string `json:"clientAuth" definition:"oneof=header|body"`
	Scope        string `json:"scope"`
}

// reading is one definition on its way to a provider.
type reading struct {
	doc     definition.Document
	written written
	faults  *definition.Faults
	resolver
}

// readProvider makes a provider of its definition, or tells all its faults.
func readProvider(doc definition.Document, from resolver) (Provider, []pawl.Field) {
	r := reading{doc: doc, resolver: from}
	r.faults = doc.Check(&r.written)
	p := Provider{Domain: r.domain(), Place: doc.Place("/domain").String()}
	p.Limit, p.Period = r.limit()
	switch {
	case r.doc.Has("/auth") && r.has("/apiKey", "/api_key"):
		r.faults.Add("/auth", "auth and apiKey exclude each other: keep one of them")
	case r.written.Auth != nil:
		p.Auth, p.credential = r.auth(*r.written.Auth)
	default:
		p.Auth, p.credential = r.apiKey()
	}
	return p, r.faults.Fields()
}

// has reports whether a field is there in any spelling.
func (r reading) has(pointers ...string) bool { return slices.ContainsFunc(pointers, r.doc.Has) }

// spelled is the pointer of a field in the spelling that was used.
func (r reading) spelled(pointers ...string) string {
	if i := slices.IndexFunc(pointers, r.doc.Has); i >= 0 {
		return pointers[i]
	}
	return pointers[0]
}

// value resolves the secrets of a text. An empty one is a fault.
func (r reading) value(pointer, text string) string {
	name := strings.TrimPrefix(pointer[strings.LastIndex(pointer, "/"):], "/")
	resolved, err := r.resolve(text)
	switch {
	case err != nil:
		r.faults.Add(pointer, "%s: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	case text == "" && !r.doc.Has(pointer):
		r.faults.Add(pointer, "%s is missing", name)
	case strings.TrimSpace(resolved) == "":
		r.faults.Add(pointer, "%s is empty", name)
	case strings.ContainsFunc(resolved, unicode.IsControl):
		r.faults.Add(pointer, "%s holds a line break or another control character", name)
	}
	return resolved
}

func (r reading) domain() string {
	if !r.doc.Has("/domain") || r.faults.At("/domain") {
		return ""
	}
	domain := normal(strings.TrimSpace(r.value("/domain", r.written.Domain)))
	if !isDomain(domain) {
		r.faults.Add("/domain", "domain %s must be the host of the URLs alone, such as api.example.com or localhost:8080", definition.Quote(r.written.Domain))
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
	hasLimit, hasPeriod := r.doc.Has("/limit"), r.doc.Has("/period")
	switch {
	case !hasLimit && !hasPeriod:
		return 0, 0
	case !hasPeriod:
		r.faults.Add("/period", "period is missing: it says in which time there may be so many calls, such as 1m")
	case !hasLimit:
		r.faults.Add("/limit", "limit is missing: it says how many calls there may be in a period")
	}
	if hasLimit && (r.written.Limit < 1 || r.written.Limit > mostLimit) {
		r.faults.Add("/limit", "limit must be from 1 to %d", mostLimit)
	}
	period, ok := parsePeriod(r.written.Period)
	if hasPeriod && !ok {
		r.faults.Add("/period", "period %s must be a number of s, m, h or d, such as 30s or 1d, and at most 366d", definition.Quote(r.written.Period))
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
	case r.doc.Has(param) && r.doc.Has(header):
		r.faults.Add(header, "apiKeyParam and apiKeyHeader exclude each other: keep one of them")
	case !r.doc.Has(key) && (r.doc.Has(param) || r.doc.Has(header)):
		r.faults.Add(key, "apiKey is missing")
	}
	if !r.doc.Has(key) {
		return AuthNone, nil
	}
	c := &credential{value: keep(r.value(key, r.written.APIKey)), param: r.written.APIKeyParam, header: r.written.APIKeyHeader}
	switch {
	case r.doc.Has(param):
		if strings.TrimSpace(c.param) == "" || strings.ContainsFunc(c.param, unicode.IsControl) {
			r.faults.Add(param, "apiKeyParam must be the name of a parameter")
		}
	case !r.doc.Has(header):
		c.header = defaultHeader
	case !isHeader(c.header):
		r.faults.Add(header, "%s cannot be the header of a key", definition.Quote(c.header))
	}
	return AuthAPIKey, c
}

// isHeader reports whether a key may be sent in a header of this name: one
// that has no meaning for the transport.
func isHeader(name string) bool {
	taken := []string{"Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Keep-Alive", "Expect", "Proxy-Connection"}
	token := regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	return token.MatchString(name) && !slices.Contains(taken, http.CanonicalHeaderKey(name))
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
			r.faults.Add("/auth/username", "username must not hold a colon")
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
		r.faults.Add("/auth/tokenUrl", "tokenUrl must be a URL that begins with https:// or http:// and holds no user name and no #")
	}
	if r.doc.Has("/auth/scope") {
		c.scope = r.value("/auth/scope", w.Scope)
	}
}

// unrelated refuses fields that another type of auth has.
func (r reading) unrelated(w writtenAuth) {
	fields := map[Auth][]string{
		AuthBearer: {"token"},
		AuthBasic:  {"username", "password"},
		AuthOAuth2: {"tokenUrl", "clientId", "clientSecret", "clientAuth", "scope"},
	}
	if fields[Auth(w.Type)] == nil {
		return // which is a fault of its own
	}
	for _, of := range []Auth{AuthBearer, AuthBasic, AuthOAuth2} {
		for _, name := range fields[of] {
			if of != Auth(w.Type) && r.doc.Has("/auth/"+name) {
				r.faults.Add("/auth/"+name, "%s is for the type %s", name, of)
			}
		}
	}
}
