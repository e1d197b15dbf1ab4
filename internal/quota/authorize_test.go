package quota

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// all has a provider of every kind.
const all = `
kind: provider
domain: header.example
apiKey: ${API_KEY}
apiKeyHeader: X-Key
---
kind: provider
domain: default.example
apiKey: ${API_KEY}
---
kind: provider
domain: param.example
apiKey: ${API_KEY}
apiKeyParam: api key
---
kind: provider
domain: bearer.example
auth: {type: bearer, token: '${TOKEN}'}
---
kind: provider
domain: basic.example
auth: {type: basic, username: pawl, password: '${PASSWORD}'}
---
kind: provider
domain: oauth.example
auth: {type: oauth2, tokenUrl: 'http://127.0.0.1:1/', clientId: pawl, clientSecret: '${CLIENT_SECRET}'}
`

// The credential of a domain is put on its requests, and on no others.
func TestRequestsGetTheCredentialOfTheirDomain(t *testing.T) {
	b := NewBook(nil, providers(t, all), nil, nil)
	for _, c := range []struct{ url, header, value, want string }{
		{"https://header.example/x?a=1", "X-Key", apiKey, "https://header.example/x?a=1"},
		{"https://DEFAULT.example:443/", "X-Api-Key", apiKey, "https://DEFAULT.example:443/"},
		{"https://param.example/?b=2&a=%31", "", "", "https://param.example/?b=2&a=%31&api+key=key-7Qx%2F%2B+a%26b"},
		{"https://param.example/?api%20key=old&a=1", "", "", "https://param.example/?a=1&api+key=key-7Qx%2F%2B+a%26b"},
		{"https://param.example/", "", "", "https://param.example/?api+key=key-7Qx%2F%2B+a%26b"},
		{"https://bearer.example/", "Authorization", "Bearer " + bearerToken, "https://bearer.example/"},
		{"https://basic.example/", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("pawl:"+password)), "https://basic.example/"},
		{"https://other.example/", "", "", "https://other.example/"},
		{"https://bearer.example.evil.example/", "", "", "https://bearer.example.evil.example/"},
		{"https://bearer.example:8443/", "", "", "https://bearer.example:8443/"},
	} {
		req := request(t, c.url)
		before := req.URL
		if err := b.Authorize(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if req.URL.String() != c.want || c.header != "" && req.Header.Get(c.header) != c.value || c.header == "" && len(req.Header) > 0 {
			t.Errorf("%s became %s %v", c.url, req.URL, req.Header)
		}
		if before.String() != c.url {
			t.Errorf("the caller's URL was changed to %s", before)
		}
		b.Rejected(req) // which changes nothing
	}
}

// Secrets are not told by anything that can be printed, encoded or logged.
func TestSecretsAreNotTold(t *testing.T) {
	p := providers(t, all)
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := NewBook(nil, p, client(t), logger)
	err := b.Authorize(t.Context(), request(t, "https://oauth.example/"))
	if err == nil {
		t.Fatal("a token came out of nowhere")
	}
	values := []any{p, b, err, p.All(), b.tokens["oauth.example"]}
	for _, provider := range p.All() {
		values = append(values, provider, &provider, struct{ inner Provider }{provider}, map[string]any{"p": provider})
	}
	for _, v := range values {
		logger.Info("value", "v", v, "s", fmt.Sprint(v))
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			checkNoSecret(t, fmt.Sprintf("%s of %T", format, v), fmt.Sprintf(format, v))
		}
		if raw, err := json.Marshal(v); err == nil {
			checkNoSecret(t, fmt.Sprintf("JSON of %T", v), string(raw))
		}
	}
	checkNoSecret(t, "the log", log.String())
	if log.Len() == 0 || !strings.Contains(log.String(), "oauth.example") {
		t.Error("nothing was logged, so the test says nothing")
	}
}

// Redact finds secrets in the ways others may quote them.
func TestRedactHidesSecrets(t *testing.T) {
	p := providers(t, all)
	basic := http.Request{Header: http.Header{}}
	basic.SetBasicAuth("pawl", password)
	quoted, _ := json.Marshal(map[string]string{"password": password})
	for _, text := range []string{
		"key " + apiKey + ".", "?key=key-7Qx%2F%2B+a%26b&x", "/key-7Qx%2F+%20a&b/", basic.Header.Get("Authorization"), string(quoted),
		bearerToken + clientSecret,
	} {
		clean := p.Redact(text)
		checkNoSecret(t, "the redacted text", clean)
		if !strings.Contains(clean, "[secret of ") {
			t.Errorf("%s became %s", text, clean)
		}
	}
	if got := p.Redact("nothing here but provider bearer.example"); got != "nothing here but provider bearer.example" {
		t.Errorf("a text without secrets became %s", got)
	}
	if got := (*Providers)(nil).Redact("x"); got != "x" {
		t.Errorf("no providers made %s of x", got)
	}
}
