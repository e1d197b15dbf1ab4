package definition

import "testing"

// In a mapping of one line, a colon ends a name only before a blank.
func TestNamesWithColons(t *testing.T) {
	for text, want := range map[string]string{
		"a: {header:X-Event: push, body:action: opened}": `{"a":{"body:action":"opened","header:X-Event":"push"},"kind":"x"}`,
		"a: {header:X-A: [x, y], b: 1}":                  `{"a":{"b":1,"header:X-A":["x","y"]},"kind":"x"}`,
		"a: {b:c: \"d e\", f:g: 5, h:i: true}":           `{"a":{"b:c":"d e","f:g":5,"h:i":true},"kind":"x"}`,
		"a: {b:u: http://x, z: {q:r: 's'}}":              `{"a":{"b:u":"http://x","z":{"q:r":"s"}},"kind":"x"}`,
		"a: {url: http://x/y, b: c:d}":                   `{"a":{"b":"c:d","url":"http://x/y"},"kind":"x"}`,
		"a: {\"x\":1, b: c}":                             `{"a":{"b":"c","x":1},"kind":"x"}`,
		"a: [b:c, d]":                                    `{"a":["b:c","d"],"kind":"x"}`,
		"a:\n  header:X-Event: push\n  b:c:\n    d: e":   `{"a":{"b:c":{"d":"e"},"header:X-Event":"push"},"kind":"x"}`,
	} {
		documents, err := Read("x.yaml", []byte("kind: x\n"+text+"\n"))
		if err != nil || len(documents) != 1 {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(documents[0].JSON()); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	documents, err := Read("x.yaml", []byte("kind: x\na: {b:c: d}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if at := documents[0].Place("/a/b:c"); at.Line != 2 || at.Column != 10 {
		t.Errorf("the value is at %s", at)
	}
}
