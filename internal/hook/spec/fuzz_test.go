package spec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// FuzzParse: a file is read as hooks, or every fault is told with its place.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"kind: hook\nname: a\nverify: {scheme: github, secret: ${env:X}}\npublish: {workflow: w, topic: t}\n", "kind: hook\nname: a\nverify: {scheme: token, secret: ${file:../x}}\njob: {task: log}\n",
		"kind: hook\nname: a\nverify: [", "kind: hook\nname: a\nmessageId: body:a..b\nmatch: {header:X: [1, true]}\n", "kind: hook\nname: a\nverify: {scheme: hmac, header: X, algorithm: md5}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse("x.yaml", text)
		if err != nil {
			if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code == pawl.CodeInvalid && len(e.Fields) == 0 {
				t.Fatalf("the error %v has no places", err)
			}
			return
		}
		for _, d := range list {
			stored, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := FromJSON(stored); err != nil {
				t.Fatalf("%s cannot be read again: %v", stored, err)
			}
		}
	})
}

// FuzzSelector: whatever a place is called and whatever a body has, it is found or not.
func FuzzSelector(f *testing.F) {
	f.Add("body:issue.id", `{"issue":{"id":1}}`)
	f.Add("body:a.0.b", `{"a":[{"b":true}]}`)
	f.Add("body:a.-1", `{"a":[1]}`)
	f.Add("header:x-event", `null`)
	f.Add("body:a.99999999999999999999", `{"a":[1]}`)
	f.Fuzz(func(t *testing.T, text, body string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		d := json.NewDecoder(strings.NewReader(body))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return
		}
		if got, ok := s.In(v); ok {
			_, _ = Text(got)
		}
		if strings.ContainsAny(s.Header, "\r\n: ") {
			t.Fatalf("the header %q", s.Header)
		}
	})
}
