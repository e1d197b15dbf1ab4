package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// DESIGN 6: a redactor guards logs and recorded arguments as a backstop.
func TestRedactorReplacesEveryFormOfASecret(t *testing.T) {
	const key = `s3cr/t+k"y é`
	r := New([]Secret{{"KEY", key}, {"SHORT", "12345"}, {"LONGER", key + "-more"}, {"DSN", "postgres://me:p4ssw0rd@db/x"}})
	for _, test := range []struct{ text, want string }{
		{"a " + key + " b " + key, "a [secret KEY] b [secret KEY]"},
		{key + "-more", "[secret LONGER]"},
		{url.QueryEscape(key), "[secret KEY]"},
		{url.PathEscape(key), "[secret KEY]"},
		{"k=s3cr%2Ft%2Bk%22y%20%C3%A9", "k=[secret KEY]"},
		{"/hook/s3cr/t+k%22y%20%C3%A9", "/hook/[secret KEY]"},
		{`{"a":"s3cr/t+k\"y é"}`, `{"a":"[secret KEY]"}`},
		{"12345", "12345"},
		{"password p4ssw0rd is wrong", "password [secret DSN] is wrong"},
		{"postgres://me:p4ssw0rd@db/x", "[secret DSN]"},
		{"nothing", "nothing"},
	} {
		if got := r.Text(test.text); got != test.want {
			t.Errorf("Text(%q) = %q, want %q", test.text, got, test.want)
		}
	}
	for _, user := range []string{"", "a:", "me:", "you:"} {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding} {
			got := r.Text("Basic " + encoding.EncodeToString([]byte(user+key+":x")))
			if !strings.Contains(got, "[secret KEY]") {
				t.Errorf("base64 after %q: %s", user, got)
			}
		}
	}
}

func TestRedactorLeavesAddressesAlone(t *testing.T) {
	r := New([]Secret{{"A", "https://shop.example.com"}, {"B", "http://shop.example.com:8080/"}, {"C", "https://hooks.example.com/T0/B0"}})
	const text = "https://shop.example.com/x http://shop.example.com:8080/ "
	if got := r.Text(text + "https://hooks.example.com/T0/B0"); got != text+"[secret C]" {
		t.Error(got)
	}
}

func TestRedactorKeepsTheRestOfTheJSON(t *testing.T) {
	r := New([]Secret{{"KEY", "secret-é\n1"}})
	for _, test := range []struct{ raw, want string }{
		{`{"a": "x secret-é\n1 <y>", "secret-\u00e9\n1": [1.50, "\u0041", null]}`, `{"a": "x [secret KEY] <y>", "[secret KEY]": [1.50, "\u0041", null]}`},
		{`"secret-\u00E9\u000a1"`, `"[secret KEY]"`},
		{`"{\"k\":\"secret-é\\n1\"}"`, `"{\"k\":\"[secret KEY]\"}"`}, // JSON within JSON
		{`"\\"`, `"\\"`},
		{`12345678901234567890`, `12345678901234567890`},
		{``, ``},
		{`"open secret-é` + "\n1", `"open [secret KEY]`},
		{`bare secret-é` + "\n1" + ` "x" secret-é` + "\n1", `bare [secret KEY] "x" [secret KEY]`},
		{`"`, `"`}, {`"\`, `"\`},
	} {
		if got := string(r.JSON(json.RawMessage(test.raw))); got != test.want {
			t.Errorf("JSON(%s) = %s, want %s", test.raw, got, test.want)
		}
	}
}

func TestRedactorWithoutSecretsChangesNothing(t *testing.T) {
	var r Redactor
	if got := r.Text("x") + string(r.JSON(json.RawMessage(`"x"`))); got != `x"x"` {
		t.Error(got)
	}
}

// Valid JSON stays valid, and no string of it holds the secret any more.
func TestRedactedJSONIsJSONWithoutTheSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(6, 20, -1).Filter(func(s string) bool { return !isAddress(s) && !strings.Contains("[secret KEY]", s) }).Draw(t, "secret")
		value := map[string]any{
			rapid.String().Draw(t, "name") + secret: rapid.String().Draw(t, "before") + secret + rapid.String().Draw(t, "after"),
			"list":                                  []any{secret, 1.5, nil, rapid.String().Draw(t, "other")},
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		clean := New([]Secret{{"KEY", secret}}).JSON(raw)
		var back map[string]any
		if err := json.Unmarshal(clean, &back); err != nil {
			t.Fatalf("%s is not JSON: %v", clean, err)
		}
		if list := back["list"].([]any); list[0] != "[secret KEY]" || list[1] != 1.5 || list[2] != nil {
			t.Errorf("the list is %v", list)
		}
		for name, v := range back {
			text, _ := v.(string)
			parts := append(strings.Split(name, "[secret KEY]"), strings.Split(text, "[secret KEY]")...)
			if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(part, secret) }) {
				t.Errorf("the secret %q is in %q: %q", secret, name, text)
			}
		}
	})
}
