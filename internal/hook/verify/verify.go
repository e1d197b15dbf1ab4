package verify

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // senders that sign with it exist; as a code with a key it is not broken
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The schemes.
const (
	Standard = "standard" // Standard Webhooks
	GitHub   = "github"
	Stripe   = "stripe"
	Slack    = "slack"
	HMAC     = "hmac"  // a code over the body, in a header of the sender's choice
	Token    = "token" // the secret itself, in a header
)

// Schemes are all of them.
func Schemes() []string { return []string{Standard, GitHub, Stripe, Slack, HMAC, Token} }

// Settings say how deliveries are verified.
type Settings struct {
	Scheme    string
	Tolerance time.Duration // around the time that was signed

	// Of the schemes hmac and token.
	Header string // that has the code or the secret

	// Of the scheme hmac.
	Algorithm string // sha256, sha512 or sha1
	Encoding  string // hex or base64; empty is either
	Prefix    string // before the code in its header; empty is the algorithm and =, or nothing
	Timestamp string // the header with the seconds since 1970 that are signed before the body, with a dot between; empty signs the body alone
}

// Timed reports whether a time is signed, so that a delivery grows old.
func (s Settings) Timed() bool {
	switch s.Scheme {
	case Standard, Stripe, Slack:
		return true
	case HMAC:
		return s.Timestamp != ""
	}
	return false
}

// The headers that schemes use.
const (
	standardID        = "Webhook-Id"
	standardTimestamp = "Webhook-Timestamp"
	standardSignature = "Webhook-Signature"
	githubSignature   = "X-Hub-Signature-256"
	stripeSignature   = "Stripe-Signature"
	slackTimestamp    = "X-Slack-Request-Timestamp"
	slackSignature    = "X-Slack-Signature"
)

// Secret reports whether a header carries what proves who sent a delivery, or
// something as confidential: it is never kept.
func (s Settings) Secret(header string) bool {
	switch header = http.CanonicalHeaderKey(header); header {
	case "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", standardSignature, githubSignature, "X-Hub-Signature", stripeSignature, slackSignature:
		return true
	}
	return s.Header != "" && header == http.CanonicalHeaderKey(s.Header)
}

// Refusal is why a delivery is not believed. It tells nothing of the secrets.
type Refusal struct {
	Code string // no_signature, bad_signature, too_old or too_new
	Msg  string
}

// Error is the sentence.
func (r *Refusal) Error() string { return r.Msg }

// The codes of refusals.
const (
	NoSignature  = "no_signature"
	BadSignature = "bad_signature"
	TooOld       = "too_old"
	TooNew       = "too_new"
)

// Verifier verifies the deliveries of one hook.
type Verifier struct {
	Settings
	keys [][]byte
	hash func() hash.Hash
}

// New makes a verifier that believes any of the secrets. Its errors name no secret.
func New(s Settings, secrets []string) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("there is no secret")
	}
	v := &Verifier{Settings: s, hash: sha256.New}
	switch s.Algorithm {
	case "", "sha256":
	case "sha512":
		v.hash = sha512.New
	case "sha1":
		v.hash = sha1.New
	default:
		return nil, fmt.Errorf("the algorithm %s is not known", s.Algorithm)
	}
	for _, secret := range secrets {
		key := []byte(secret)
		if s.Scheme == Standard {
			var err error
			if key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err != nil {
				return nil, fmt.Errorf("a secret of Standard Webhooks is base64, mostly after whsec_")
			}
		}
		if len(key) == 0 {
			return nil, fmt.Errorf("a secret is empty")
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Check fails with a *Refusal unless the delivery was made by somebody who knows one
// of the secrets, not longer ago than the tolerance.
func (v *Verifier) Check(h http.Header, body []byte, now time.Time) error {
	if v.Scheme == Token {
		return v.checkToken(h)
	}
	c, err := v.claimOf(h)
	if err != nil {
		return err
	}
	if !v.signed(c, body) {
		return &Refusal{BadSignature, "the signature does not fit the body and the secret"}
	}
	if !v.Timed() {
		return nil
	}
	return v.checkAge(c.timestamp, now)
}

// claim is what the headers of a delivery say.
type claim struct {
	before    string // what is signed before the body
	timestamp string
	codes     [][]byte
}

// mostCodes are looked at of one delivery: senders that change their secret send two.
const mostCodes = 16

func (v *Verifier) claimOf(h http.Header) (c claim, err error) {
	var written []string
	var decode func(string) ([]byte, error)
	switch v.Scheme {
	case Standard:
		c.timestamp, decode = h.Get(standardTimestamp), base64.StdEncoding.DecodeString
		c.before = h.Get(standardID) + "." + c.timestamp + "."
		for part := range strings.FieldsSeq(h.Get(standardSignature)) {
			if code, ok := strings.CutPrefix(part, "v1,"); ok {
				written = append(written, code)
			}
		}
	case GitHub:
		decode = hex.DecodeString
		written = prefixed(h.Get(githubSignature), "sha256=")
	case Stripe:
		decode = hex.DecodeString
		for part := range strings.SplitSeq(h.Get(stripeSignature), ",") {
			switch key, value, _ := strings.Cut(strings.TrimSpace(part), "="); key {
			case "t":
				c.timestamp = value
			case "v1":
				written = append(written, value)
			}
		}
		c.before = c.timestamp + "."
	case Slack:
		c.timestamp, decode = h.Get(slackTimestamp), hex.DecodeString
		c.before = "v0:" + c.timestamp + ":"
		written = prefixed(h.Get(slackSignature), "v0=")
	case HMAC:
		decode = v.decoded
		text := strings.TrimSpace(h.Get(v.Header))
		if v.Prefix == "" { // many write the algorithm there
			text = strings.TrimPrefix(text, v.Algorithm+"=")
		}
		written = prefixed(text, v.Prefix)
		if v.Timestamp != "" {
			c.timestamp = h.Get(v.Timestamp)
			c.before = c.timestamp + "."
		}
	}
	if len(written) == 0 {
		return c, &Refusal{NoSignature, "there is no signature of the scheme " + v.Scheme}
	}
	for _, text := range written[:min(len(written), mostCodes)] {
		if code, err := decode(text); err == nil {
			c.codes = append(c.codes, code)
		}
	}
	return c, nil
}

// decoded reads a code in the encoding that was named, or in the one that it has.
func (v *Verifier) decoded(text string) ([]byte, error) {
	if v.Encoding != "base64" {
		if code, err := hex.DecodeString(text); err == nil || v.Encoding == "hex" {
			return code, err
		}
	}
	return base64.StdEncoding.DecodeString(text)
}

// prefixed is what follows the prefix of a header, or nothing.
func prefixed(header, prefix string) []string {
	if code, ok := strings.CutPrefix(strings.TrimSpace(header), prefix); ok && code != "" {
		return []string{code}
	}
	return nil
}

// signed compares every code with that of every key, and does not stop at one that
// fits.
func (v *Verifier) signed(c claim, body []byte) bool {
	fits := 0
	for _, key := range v.keys {
		mac := hmac.New(v.hash, key)
		_, _ = mac.Write([]byte(c.before))
		_, _ = mac.Write(body)
		want := mac.Sum(nil)
		for _, code := range c.codes {
			fits |= subtle.ConstantTimeCompare(want, code)
		}
	}
	return fits == 1
}

// checkToken compares hashes, so that the length of a secret cannot be measured.
func (v *Verifier) checkToken(h http.Header) error {
	text := h.Get(v.Header)
	if scheme, token, ok := strings.Cut(text, " "); ok && strings.EqualFold(scheme, "Bearer") {
		text = strings.TrimSpace(token)
	}
	if text == "" {
		return &Refusal{NoSignature, "there is no secret in the header " + v.Header}
	}
	given, fits := sha256.Sum256([]byte(text)), 0
	for _, key := range v.keys {
		want := sha256.Sum256(key)
		fits |= subtle.ConstantTimeCompare(want[:], given[:])
	}
	if fits != 1 {
		return &Refusal{BadSignature, "the secret in the header " + v.Header + " is not the one of the hook"}
	}
	return nil
}

func (v *Verifier) checkAge(timestamp string, now time.Time) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return &Refusal{BadSignature, "the time that was signed is not a number of seconds"}
	}
	age := now.Sub(time.Unix(seconds, 0))
	switch {
	case age > v.Tolerance:
		return &Refusal{TooOld, fmt.Sprintf("it was signed %s ago; at most %s are allowed", age.Truncate(time.Second), v.Tolerance)}
	case age < -v.Tolerance:
		return &Refusal{TooNew, fmt.Sprintf("it was signed %s ahead of this clock; at most %s are allowed", (-age).Truncate(time.Second), v.Tolerance)}
	}
	return nil
}
