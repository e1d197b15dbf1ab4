package definition

import (
	"errors"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// yamlSeeds are texts that have hurt readers of YAML.
func yamlSeeds() []string {
	return []string{
		"kind: a\nname: b\n", "a: &a [*a]", "a: &a [b, b]\nc: [*a, *a]\n", "? a\n: b", "--- !!x\n<<: {}", "kind: [", "- - - -\n---\n...\n%YAML 1.2\n", "kind: a\r\nname: \"\\u0000\"\r\n",
		"\xef\xbb\xbfkind: a\n", "kind: a\nkind: b\n", "kind: !!binary aGk=\n", "kind: a\nn: 0x7fffffffffffffff\nm: .inf\n", "kind: a\n---\nkind: b\n---\n", "a: |\n  b\n c\n", "\t", "a: b: c",
	}
}

// FuzzRead: whatever a file has, it is read or every fault has its place in it.
func FuzzRead(f *testing.F) {
	for _, text := range yamlSeeds() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		documents, err := Read("x.yaml", text)
		if err == nil {
			for _, d := range documents {
				if d.Kind == "" || d.Line < 1 {
					t.Fatalf("a document without a kind or a place: %+v", d)
				}
				var into struct {
					Name string         `json:"name"`
					Rest map[string]any `json:"rest"`
				}
				_ = d.Check(&into)
			}
			return
		}
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code == pawl.CodeInvalid && len(e.Fields) == 0 {
			t.Fatalf("the error %v has no places", err)
		}
		_, _ = ReadSettings("x.yaml", text)
	})
}

// FuzzReadJSON: the same for definitions that come by the API.
func FuzzReadJSON(f *testing.F) {
	for _, text := range []string{`{"kind":"a","name":"b"}`, `{"a":{"a":1,"a":2}}`, `[`, `null`, `{"n":1e999}`, `{"\ud800":1}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := ReadJSON(text)
		if err != nil {
			if _, ok := errors.AsType[*pawl.Error](err); !ok {
				t.Fatalf("%v is no error of ours", err)
			}
			return
		}
		var into struct {
			Name string `json:"name"`
		}
		_ = d.Check(&into)
	})
}

// FuzzParseSize: no size is negative.
func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"65536", "512KiB", "64kB", "9223372036854775807GiB", "-1", "", " 1", "1 MB", "0x10"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := ParseSize(text); ok && n < 0 {
			t.Fatalf("%q is %d", text, n)
		}
	})
}
