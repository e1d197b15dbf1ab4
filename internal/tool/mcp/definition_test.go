package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func tool(t *testing.T, text string) definition {
	t.Helper()
	var tool sdk.Tool
	if err := json.Unmarshal([]byte(text), &tool); err != nil {
		t.Fatal(err)
	}
	d, err := define(&tool)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A hash that came out differently would block the tools of everybody.
func TestHashStaysTheSameForever(t *testing.T) {
	d := tool(t, `{"name":"send","description":"Sends <it>.","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"n":{"minimum":1.5}}},"annotations":{"idempotentHint":true}}`)
	if got, want := d.hash(), "sha256:67a0b1705e33d832f5b9d5ecc56e5a61edb980f4eaa565a2ecac83bccffaf13c"; got != want {
		t.Errorf("the hash is %s; want %s", got, want)
	}
}

func TestHashIsOverAllThatIsPinnedAndNothingElse(t *testing.T) {
	base := `{"name":"x","description":"d","inputSchema":{"type":"object","properties":{"a":{},"b":{}}},"annotations":{"readOnlyHint":true}}`
	for _, same := range []string{
		`{"annotations":{"readOnlyHint":true,"idempotentHint":false,"destructiveHint":true,"openWorldHint":true},"inputSchema":{"properties":{"b":{},"a":{}}, "type":"object"},"description":"d","name":"x"}`,
		`{"name":"x","title":"other","icons":[{"src":"x"}],"_meta":{"a":1},"description":"d","inputSchema":{"type":"object","properties":{"a":{},"b":{}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
	} {
		if tool(t, base).hash() != tool(t, same).hash() {
			t.Errorf("the hash differs for %s", same)
		}
	}
	for _, other := range []struct{ old, now string }{
		{`"name":"x"`, `"name":"y"`}, {`"d"`, `"e"`}, {`"a":{}`, `"a":{"type":"string"}`}, {`"readOnlyHint":true`, `"readOnlyHint":false`},
		{`"readOnlyHint":true`, `"readOnlyHint":true,"destructiveHint":false`}, {`"readOnlyHint":true`, `"readOnlyHint":true,"title":"t"`},
		{`"readOnlyHint":true`, `"readOnlyHint":true,"openWorldHint":false`}, {`"readOnlyHint":true`, `"readOnlyHint":true,"idempotentHint":true`},
	} {
		if tool(t, base).hash() == tool(t, strings.Replace(base, other.old, other.now, 1)).hash() {
			t.Errorf("the hash is the same with %s", other.now)
		}
	}
}

func TestOddToolsAreLeftOut(t *testing.T) {
	for _, odd := range []*sdk.Tool{
		{Name: ""}, {Name: "a\nb"}, {Name: strings.Repeat("x", longestName+1)}, {Name: "x", Description: strings.Repeat("x", largestDefinition)},
	} {
		if d, err := define(odd); err == nil {
			t.Errorf("%.40q is taken as %.40q", odd.Name, d.Name)
		}
	}
}

func TestChangesAreToldInShort(t *testing.T) {
	old := tool(t, `{"name":"x","description":"`+strings.Repeat("long ", 40)+`end","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{}},"required":["a"]}}`)
	now := tool(t, `{"name":"x","description":"`+strings.Repeat("long ", 40)+`trap","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"},"d":{}}},"annotations":{"title":"t","readOnlyHint":true}}`)
	want := `the description was "...long long long long end" and is "...long long long long trap"; ` +
		`the input schema changed: added "d", removed "c", changed "a", "b"; readOnlyHint was false and is true; the title was "" and is "t"`
	if got := describeChange(old, now); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := describeChange(old, old); got != "it does not match its pin" {
		t.Error(got)
	}
	deep := old
	deep.InputSchema = json.RawMessage(strings.Replace(string(old.InputSchema), `"type":"object"`, `"type":"object","additionalProperties":false`, 1))
	if got := describeChange(old, deep); got != "the input schema changed: not in the arguments themselves" {
		t.Error(got)
	}
}

// A schema comes from outside: whatever it is, checking comes to an end.
func TestHostileSchemasAreLeftToTheServer(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"$dynamicRef":"#a","$dynamicAnchor":"a"}`, `null`, `5`, `"x"`, `[]`, `{"type":5}`,
		`{"properties":{"a":null}}`, `{"pattern":"(?<x>"}`, `{"$schema":"https://example.com/own"}`, `{"$id":"%"}`,
		`{"properties":{"a":{"$ref":"https://example.com/remote"}}}`, strings.Repeat(`{"not":`, 5000) + "{}" + strings.Repeat("}", 5000),
	} {
		if _, fault := checkArguments(json.RawMessage(`{"a":"b"}`), definition{Name: "x", InputSchema: json.RawMessage(schema)}); fault != nil {
			t.Errorf("%.60s: %v", schema, fault)
		}
	}
}

func TestViolationsAreExplained(t *testing.T) {
	schema := `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`
	for arguments, want := range map[string]string{
		`{}`:                       `required: missing properties: ["path"]`,
		`{"path":5}`:               `path: type: 5 has type "integer", want "string"`,
		`{"path":"a","n":"x"}`:     `n: type: x has type "string", want "integer"`,
		`{"path":"a","file":"b"}`:  `unexpected additional properties ["file"]`,
		`{"path":"a","n":1}`:       "",
		`{"path":"a","n":1} trail`: "the arguments are not an object",
	} {
		_, fault := checkArguments(json.RawMessage(arguments), definition{Name: "x", InputSchema: json.RawMessage(schema)})
		switch {
		case want == "" && fault != nil, want != "" && fault == nil:
			t.Errorf("%s: %v; want %q", arguments, fault, want)
		case fault != nil && (!strings.HasSuffix(fault.Msg, want) || fault.Hint != `The arguments are "n", "path".`):
			t.Errorf("%s: %s (%s); want %q", arguments, fault.Msg, fault.Hint, want)
		}
	}
}
