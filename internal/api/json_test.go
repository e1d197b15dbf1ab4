package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
)

func TestDecodeSaysWhere(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1}`:                         "",
		`[{"a":1},{"a":1}]`:               "",
		`{"a":{"a":{"a":[]}}}`:            "",
		`"a"`:                             "",
		` 1 `:                             "",
		"":                                "unexpected end",
		"{}}":                             "line 1, column 3 (byte 3): invalid character '}' after top-level value",
		"{\n\"a\": 1,\n \"a\": 2}":        `line 3, column 4 (byte 14): the key "a" is named twice in one object`,
		`[1,{"a":[{"b":1}],"c":2,"c":3}]`: `the key "c" is named twice`,
		`{"a":1,"b":{"a":1},"a":{"b":1}}`: `the key "a" is named twice`,
		"{\"a\":\"\xff\"}":                "line 1, column 7 (byte 7): a byte that is not UTF-8",
		"{\"a\":\"\xed\xa0\x80\"}":        "not UTF-8",
		"\xef\xbb\xbf{}":                  "line 1, column 1 (byte 1): invalid character",
		strings.Repeat("[", 20_000):       "exceeded max depth",
		`{"a":NaN}`:                       "invalid character 'N'",
		`{"a":01}`:                        "invalid character '1'",
		`{"\u0061":1,"a":2}`:              `the key "a" is named twice`,
		`{"a":"x","b":"a","c":["a","a"]}`: "",
		`{"a":"b","b":"a"}`:               "",
		`{"":1,"":2}`:                     `the key "" is named twice`,
		"{\"a\": \"line\nbreak\"}":        "invalid character '\\n' in string literal",
	} {
		var v any
		err := decode([]byte(body), &v)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.40q: %v", body, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: %v, want %q", body, err, want)
		}
	}
}

// FuzzDecode: whatever is accepted is one JSON value that reads the same for
// everybody.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{"a":null}]}`, `{"a":1,"a":2}`, "\xff", `[[[`, `"\ud800"`, `{"a":1}{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if decode(data, &v) != nil {
			return
		}
		once, err := json.Marshal(v)
		if err != nil || !json.Valid(data) {
			t.Fatalf("accepted %q: %v", data, err)
		}
		var w any
		if err := decode(once, &w); err != nil {
			t.Fatalf("%q was accepted, but not as %q: %v", data, once, err)
		}
	})
}

func TestInstantsHaveOneForm(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	raw, err := json.Marshal(map[string]any{"at": client.At(time.Date(2030, 1, 2, 3, 4, 5, 999_999_999, zone)), "never": client.At(time.Time{})})
	if err != nil || string(raw) != `{"at":"2030-01-02T01:04:05.999Z","never":null}` {
		t.Errorf("%s %v", raw, err)
	}
	var back client.Instant
	if err := json.Unmarshal([]byte(`"2030-01-02T01:04:05.999Z"`), &back); err != nil || !back.Equal(time.Date(2030, 1, 2, 1, 4, 5, 999_000_000, time.UTC)) {
		t.Errorf("%v %v", back, err)
	}
	if json.Unmarshal([]byte(`"tomorrow"`), &back) == nil || json.Unmarshal([]byte(`7`), &back) == nil {
		t.Error("accepted what is no instant")
	}
}
