package verify

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"strings"
	"testing"
	"time"
)

func verifier(t testing.TB, s Settings, secrets ...string) *Verifier {
	t.Helper()
	v, err := New(s, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func refusedWith(t testing.TB, what string, err error, code string) {
	t.Helper()
	if r, ok := errors.AsType[*Refusal](err); !ok || r.Code != code {
		t.Errorf("%s: the answer is %v, want %s", what, err, code)
	}
}

func codeOf(h func() hash.Hash, key, text string) []byte {
	mac := hmac.New(h, []byte(key))
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// The example of Slack's own documentation.
func TestSlackSigns(t *testing.T) {
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	v := verifier(t, Settings{Scheme: Slack, Tolerance: 5 * time.Minute}, "8f742231b10e8888abcd99yyyzzz85a5")
	h := headers("X-Slack-Request-Timestamp", "1531420618", "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")
	at := time.Unix(1531420618, 0)
	if err := v.Check(h, []byte(body), at); err != nil {
		t.Error(err)
	}
	refusedWith(t, "replayed", v.Check(h, []byte(body), at.Add(6*time.Minute)), TooOld)
	h.Set("X-Slack-Request-Timestamp", "1531420619")
	refusedWith(t, "with another time", v.Check(h, []byte(body), at), BadSignature)
}

// Others sign in their own ways.
func TestHMACSigns(t *testing.T) {
	const body, key = `{"n":1}`, "k"
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		settings Settings
		header   string
	}{
		{Settings{Algorithm: "sha256"}, hex.EncodeToString(codeOf(sha256.New, key, body))},
		{Settings{Algorithm: "sha256"}, "sha256=" + hex.EncodeToString(codeOf(sha256.New, key, body))},
		{Settings{Algorithm: "sha256"}, base64.StdEncoding.EncodeToString(codeOf(sha256.New, key, body))},
		{Settings{Algorithm: "sha512", Encoding: "base64"}, base64.StdEncoding.EncodeToString(codeOf(sha512.New, key, body))},
		{Settings{Algorithm: "sha1", Prefix: "v1="}, "v1=" + hex.EncodeToString(codeOf(sha1.New, key, body))},
		{Settings{Algorithm: "sha256", Timestamp: "X-Time"}, hex.EncodeToString(codeOf(sha256.New, key, "1700000000."+body))},
	} {
		c.settings.Scheme, c.settings.Header, c.settings.Tolerance = HMAC, "X-Signature", time.Minute
		v := verifier(t, c.settings, key)
		h := headers("X-Signature", c.header, "X-Time", "1700000000")
		if err := v.Check(h, []byte(body), at); err != nil {
			t.Errorf("%+v: %v", c.settings, err)
		}
		refusedWith(t, "another body", v.Check(h, []byte(body+"x"), at), BadSignature)
		err := v.Check(h, []byte(body), at.Add(time.Hour))
		if c.settings.Timestamp == "" && err != nil {
			t.Errorf("%+v signs no time, and grows old: %v", c.settings, err)
		} else if c.settings.Timestamp != "" {
			refusedWith(t, "replayed", err, TooOld)
		}
	}
}

// While a secret is changed both are believed, afterwards the new one only.
func TestSecretsRotate(t *testing.T) {
	h := headers("X-Hub-Signature-256", "sha256="+hex.EncodeToString(codeOf(sha256.New, "old", "{}")))
	s := Settings{Scheme: GitHub}
	if err := verifier(t, s, "new", "old").Check(h, []byte("{}"), time.Now()); err != nil {
		t.Error(err)
	}
	refusedWith(t, "after the change", verifier(t, s, "new").Check(h, []byte("{}"), time.Now()), BadSignature)

	// A sender that changes its secret signs with both.
	at := time.Unix(1_700_000_000, 0)
	sign := func(key string) string {
		raw, _ := base64.StdEncoding.DecodeString(key)
		return "v1," + base64.StdEncoding.EncodeToString(codeOf(sha256.New, string(raw), "m.1700000000.{}"))
	}
	h = headers("webhook-id", "m", "webhook-timestamp", "1700000000", "webhook-signature", "v1a,xxxx "+sign("b2xk")+" "+sign("bmV3"))
	for _, key := range []string{"b2xk", "bmV3", "whsec_bmV3"} {
		if err := verifier(t, Settings{Scheme: Standard, Tolerance: time.Minute}, key).Check(h, []byte("{}"), at); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestTokens(t *testing.T) {
	v := verifier(t, Settings{Scheme: Token, Header: "Authorization"}, "one", "two")
	for _, good := range []string{"Bearer one", "bearer two", "two"} {
		if err := v.Check(headers("Authorization", good), nil, time.Now()); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"Bearer on", "Bearer onee", "Bearer", "Basic one", "Bearer one two"} {
		refusedWith(t, bad, v.Check(headers("Authorization", bad), nil, time.Now()), BadSignature)
	}
	refusedWith(t, "nothing", v.Check(headers(), nil, time.Now()), NoSignature)
}

// Headers that no library would make are refused, and an empty code is none.
func TestHeadersThatAreNone(t *testing.T) {
	for _, scheme := range []string{Standard, GitHub, Stripe, Slack, HMAC} {
		v := verifier(t, Settings{Scheme: scheme, Header: "X-Signature", Algorithm: "sha256", Tolerance: time.Hour}, "bmV3")
		refusedWith(t, scheme+" without headers", v.Check(headers(), []byte("{}"), time.Now()), NoSignature)
		for _, text := range []string{"x", "sha256=", "sha256=zz", "v0=", "v0=00", "v1,", "v1,AA==", "t=1", "t=,v1=", "t=1,v1=00", strings.Repeat("v1,AA== ", 5000), "=", ","} {
			h := headers("webhook-id", "m", "webhook-timestamp", "1", "webhook-signature", text, "X-Hub-Signature-256", text,
				"Stripe-Signature", text, "X-Slack-Signature", text, "X-Slack-Request-Timestamp", "1", "X-Signature", text)
			if v.Check(h, []byte("{}"), time.Now()) == nil {
				t.Errorf("%s believes %.40q", scheme, text)
			}
		}
	}
	// A signed time that is no number is no time.
	h := headers("X-Slack-Request-Timestamp", "soon", "X-Slack-Signature", "v0="+hex.EncodeToString(codeOf(sha256.New, "k", "v0:soon:{}")))
	refusedWith(t, "soon", verifier(t, Settings{Scheme: Slack, Tolerance: time.Hour}, "k").Check(h, []byte("{}"), time.Now()), BadSignature)
}

// At most so many codes are looked at, whatever a header has.
func TestCodesAreCounted(t *testing.T) {
	v := verifier(t, Settings{Scheme: Standard}, "bmV3")
	c, err := v.claimOf(headers("webhook-id", "m", "webhook-timestamp", "1", "webhook-signature", strings.Repeat("v1,AA== ", 5000)))
	if err != nil || len(c.codes) != mostCodes {
		t.Errorf("%d codes are looked at, %v", len(c.codes), err)
	}
}

func TestSecretsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		scheme  string
		secrets []string
	}{{GitHub, nil}, {GitHub, []string{""}}, {Standard, []string{"whsec_***"}}, {Standard, []string{"whsec_"}}, {GitHub, []string{"good", ""}}} {
		if _, err := New(Settings{Scheme: c.scheme}, c.secrets); err == nil {
			t.Errorf("%s takes %q", c.scheme, c.secrets)
		}
	}
	if _, err := New(Settings{Scheme: HMAC, Algorithm: "md5"}, []string{"x"}); err == nil {
		t.Error("md5 is taken")
	}
}

func TestSecretHeaders(t *testing.T) {
	s := Settings{Scheme: Token, Header: "X-Gitlab-Token"}
	for _, name := range []string{"authorization", "Cookie", "stripe-signature", "x-gitlab-token", "X-Hub-Signature-256", "Webhook-Signature", "x-slack-signature"} {
		if !s.Secret(name) {
			t.Errorf("%s is no secret", name)
		}
	}
	if s.Secret("X-GitHub-Event") {
		t.Error("the name of an event is a secret")
	}
}

// Nothing that is sent makes it panic, and nothing that is not signed is believed.
func FuzzCheck(f *testing.F) {
	f.Add("v1,AA==", "1", []byte("{}"))
	f.Add("t=1,v1=00", "x", []byte(""))
	f.Add("sha256=00", "9999999999999999999", []byte("\xff"))
	f.Fuzz(func(t *testing.T, signature, at string, body []byte) {
		for _, scheme := range Schemes() {
			v := verifier(t, Settings{Scheme: scheme, Header: "X-Signature", Algorithm: "sha256", Timestamp: "X-Time", Tolerance: time.Hour}, "c2VjcmV0")
			h := http.Header{}
			for _, name := range []string{"Webhook-Signature", "X-Hub-Signature-256", "Stripe-Signature", "X-Slack-Signature", "X-Signature"} {
				h[name] = []string{signature}
			}
			for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "X-Slack-Request-Timestamp", "X-Time"} {
				h[name] = []string{at}
			}
			if scheme != Token && v.Check(h, body, time.Now()) == nil {
				t.Fatalf("%s believes %q", scheme, signature)
			}
		}
	})
}
