package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

const (
	largestTokenAnswer = 64 << 10 // bytes
	longestToken       = 16 << 10 // bytes
	defaultTokenLife   = 10 * time.Minute
	longestTokenLife   = 24 * time.Hour
)

// requestToken asks the token endpoint of a provider for a token, by the client
// credentials grant of OAuth2.
func requestToken(ctx context.Context, p Provider, client *outbound.Client) (token, error) {
	fault := func(class pawl.Class, format string, values ...any) *CredentialError {
		e := &CredentialError{Domain: p.Domain, Class: class, Msg: fmt.Sprintf(format, values...)}
		if class == pawl.ClassAuth {
			e.Hint = "Check tokenUrl, clientId and clientSecret of the provider of " + p.Domain + "."
		}
		return e
	}
	if client == nil {
		return token{}, fault(pawl.ClassAuth, "there is no network here")
	}
	req, err := tokenRequest(ctx, p.credential)
	if err != nil {
		return token{}, fault(pawl.ClassAuth, "the request cannot be made")
	}
	asked := time.Now()
	resp, err := client.Do(ctx, req)
	if err != nil {
		return token{}, unanswered(fault, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }() // nothing of it is told
		e := fault(classOf(resp.StatusCode), "the token endpoint answered %d", resp.StatusCode)
		e.RetryAfter, _ = outbound.RetryAfter(resp.Header, time.Now(), longestRest)
		return token{}, e
	}
	body, err := outbound.ReadBody(resp, largestTokenAnswer)
	if err != nil {
		return token{}, unanswered(fault, err)
	}
	t, class, reason := readToken(body, asked)
	if reason != "" {
		return token{}, fault(class, "%s", reason)
	}
	return t, nil
}

func tokenRequest(ctx context.Context, c *credential) (*http.Request, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.scope != "" {
		form.Set("scope", c.scope)
	}
	if c.secretInBody {
		form.Set("client_id", c.user())
		form.Set("client_secret", c.value())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.tokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !c.secretInBody {
		req.SetBasicAuth(url.QueryEscape(c.user()), url.QueryEscape(c.value())) // RFC 6749, 2.3.1
	}
	return req, nil
}

// unanswered is the error of a request without a usable answer. The cause is
// left out, as it names the endpoint and may quote it.
func unanswered(fault func(pawl.Class, string, ...any) *CredentialError, err error) error {
	class, kind := pawl.ClassTransient, ""
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		kind = ": " + string(e.Kind)
		if c := e.Verdict(outbound.Read).Class; c != "" && c != pawl.ClassTransient {
			class = pawl.ClassAuth
		}
	}
	wrapped := fault(class, "the token endpoint gave no usable answer%s", kind)
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			wrapped.Err = cause
		}
	}
	return wrapped
}

// classOf tells an endpoint that has a bad day from one that says no.
func classOf(status int) pawl.Class {
	if outbound.JudgeStatus(outbound.Read, status).Class == pawl.ClassTransient {
		return pawl.ClassTransient
	}
	return pawl.ClassAuth
}

// readToken reads the answer of a token endpoint, or says what is wrong with
// it. What is not even JSON came from somebody in between.
func readToken(body []byte, asked time.Time) (t token, class pawl.Class, reason string) {
	var answer struct {
		AccessToken string          `json:"access_token"`
		TokenType   string          `json:"token_type"`
		ExpiresIn   json.RawMessage `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return token{}, pawl.ClassTransient, "the token endpoint answered something else than a token"
	}
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	switch value := answer.AccessToken; {
	case value == "":
		return token{}, pawl.ClassAuth, "the token endpoint answered without a token"
	case len(value) > longestToken || strings.ContainsFunc(value, strange):
		return token{}, pawl.ClassAuth, "the token endpoint answered with a token that cannot be sent"
	case answer.TokenType != "" && !strings.EqualFold(answer.TokenType, "bearer"):
		return token{}, pawl.ClassAuth, "the token endpoint answered with a token that is not a bearer token"
	}
	life := tokenLife(strings.Trim(string(answer.ExpiresIn), `"`))
	expires := asked.Add(life)
	return token{value: keep(answer.AccessToken), expiresAt: expires, renewAt: expires.Add(-min(renewBefore, life/4))}, "", ""
}

// tokenLife is how long a token is used. One that is not told, or makes no
// sense, is short: the server refuses the token if it is even shorter.
func tokenLife(told string) time.Duration {
	seconds, ok := number(told)
	if !ok || seconds == 0 {
		return defaultTokenLife
	}
	return time.Duration(min(seconds, longestTokenLife.Seconds()) * float64(time.Second))
}
