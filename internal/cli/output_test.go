package cli

import (
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

func TestYAMLKeepsOrderAndTypes(t *testing.T) {
	raw := `{"z":1,"a":"\ud83d\ude00","id":"380234515138166784","n":380234515138166784,"f":1.5,"yes":"yes","null":"null","none":null,` +
		`"list":[],"empty":{},"deep":[{"b":true,"a":["x\ny"]}],"exp":"1e3","url":"http:\/\/x"}`
	text, err := toYAML(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("z: 1\na: ", string(text[:8])); diff != "" {
		t.Errorf("order: %s", diff)
	}
	var got, want any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := json.Unmarshal([]byte(raw), &want); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if err := json.Unmarshal(asJSON, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
}

func TestBrokenJSONIsNotWrittenAsYAML(t *testing.T) {
	for _, raw := range []string{"", "{", `{"a"`, `{"a":[`, "["} {
		if text, err := toYAML(json.RawMessage(raw)); err == nil {
			t.Errorf("%q became %q", raw, text)
		}
	}
}
