// Package redact puts the names of secrets in place of their values, in texts
// that others wrote. It is pure.
package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// shortestSecret is in characters. Anything shorter is found in texts that
// have nothing to do with it.
const shortestSecret = 6

// Secret is a value that must not be told. It is held in memory only.
type Secret struct {
	Name  string // what stands in its place, such as that of its variable or file
	Value string
}

// Redactor puts the names of secrets in place of their values. It is a net for
// what should not be there: a server that echoes a key, a log line that quotes
// it. It knows a value as it is, as it is written in URLs and in JSON, and in
// base64, alone or within something longer such as user:password. The zero
// value knows no secret. It is safe for concurrent use.
type Redactor struct {
	replacer *strings.Replacer // nil if there is nothing to replace
}

// New makes a redactor for secrets. Values that are too short, and
// addresses of servers, which are configured in the same way but are not
// secret, are left alone.
func New(secrets []Secret) Redactor {
	type form struct{ text, name string }
	var forms []form
	for _, secret := range withPasswords(secrets) {
		if utf8.RuneCountInString(secret.Value) < shortestSecret || isAddress(secret.Value) {
			continue
		}
		for _, text := range formsOf(secret.Value) {
			forms = append(forms, form{text, "[secret " + secret.Name + "]"})
		}
	}
	if len(forms) == 0 {
		return Redactor{}
	}
	// At one place the longest wins, so that no secret that begins like
	// another leaves its end behind.
	slices.SortStableFunc(forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	var pairs []string
	for _, f := range forms {
		pairs = append(pairs, f.text, f.name)
	}
	return Redactor{replacer: strings.NewReplacer(pairs...)}
}

// Text returns the text without secrets.
func (r Redactor) Text(text string) string {
	if r.replacer == nil {
		return text
	}
	return r.replacer.Replace(text)
}

// JSON returns a JSON value without secrets in its strings, names included.
// All else stays as it is. What is not JSON is treated as text.
func (r Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if r.replacer == nil {
		return raw
	}
	if !json.Valid(raw) {
		return json.RawMessage(r.Text(string(raw)))
	}
	var out bytes.Buffer
	for rest := []byte(raw); ; {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			out.Write(rest)
			return out.Bytes()
		}
		out.Write(rest[:start])
		length := stringLength(rest[start:])
		out.Write(r.stringLiteral(rest[start : start+length]))
		rest = rest[start+length:]
	}
}

// stringLiteral is a string of JSON, with its quotes, without secrets.
func (r Redactor) stringLiteral(literal []byte) []byte {
	var text string
	_ = json.Unmarshal(literal, &text) // it is valid
	clean := r.Text(text)
	if clean == text {
		return literal
	}
	return encodeString(clean)
}

// stringLength is how long the string is that valid JSON begins with, quotes
// included.
func stringLength(raw []byte) int {
	end := 1
	for raw[end] != '"' {
		if raw[end] == '\\' {
			end++
		}
		end++
	}
	return end + 1
}

// encodeString writes a string in JSON, without the detours that Go takes for
// browsers.
func encodeString(text string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always can be
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// withPasswords adds the passwords inside of secrets that are URLs, because
// others quote these alone.
func withPasswords(secrets []Secret) []Secret {
	all := slices.Clone(secrets)
	for _, secret := range secrets {
		u, err := url.Parse(secret.Value)
		if err != nil || u.User == nil {
			continue
		}
		if password, set := u.User.Password(); set {
			all = append(all, Secret{Name: secret.Name, Value: password})
		}
	}
	return all
}

// isAddress reports whether a value is the address of a web server and nothing
// more.
func isAddress(value string) bool {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return false
	}
	web := u.Scheme == "http" || u.Scheme == "https"
	return web && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// formsOf are the ways in which a value may be written.
func formsOf(value string) []string {
	inJSON := encodeString(value)
	inQuery := url.QueryEscape(value)
	forms := []string{
		value, string(inJSON[1 : len(inJSON)-1]),
		inQuery, strings.ReplaceAll(inQuery, "+", "%20"), url.PathEscape(value), (&url.URL{Path: value}).EscapedPath(),
	}
	for shift := range 3 {
		forms = append(forms, base64Form(base64.RawStdEncoding, value, shift), base64Form(base64.RawURLEncoding, value, shift))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// base64Form is what all texts have in common in base64 that have the value
// after shift bytes, or any multiple of three more. The characters at either
// end that depend on its neighbours are left out.
func base64Form(encoding *base64.Encoding, value string, shift int) string {
	encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
	first := (8*shift + 5) / 6
	last := 8 * (shift + len(value)) / 6
	return encoded[first:last]
}
