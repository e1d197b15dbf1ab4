package quota

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/internal/definition"
)

// What the schema says about definitions is what Load says.
func TestSchemaAgreesWithLoad(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(ProviderSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		"{kind: provider, domain: a.example}":                                                                                      true,
		"{kind: provider, domain: a.example, limit: 5, period: 1m}":                                                                true,
		"{kind: provider, domain: a.example, api_key: '${API_KEY}', api_key_header: X-Key}":                                        true,
		"{kind: provider, domain: a.example, apiKey: '${API_KEY}', apiKeyParam: key}":                                              true,
		"{kind: provider, domain: a.example, auth: {type: bearer, token: '${TOKEN}'}}":                                             true,
		"{kind: provider, domain: a.example, auth: {type: basic, username: a, password: '${PASSWORD}'}}":                           true,
		"{kind: provider, domain: a.example, auth: {type: oauth2, tokenUrl: 'https://a.example/t', clientId: a, clientSecret: b}}": true,
		"{kind: source, domain: a.example}":                                                                                        false,
		"{kind: provider}":                                                                                                         false,
		"{kind: provider, domain: a.example, limit: 5}":                                                                            false,
		"{kind: provider, domain: a.example, limit: 0, period: 1m}":                                                                false,
		"{kind: provider, domain: a.example, limit: 5, period: soon}":                                                              false,
		"{kind: provider, domain: a.example, limits: 5}":                                                                           false,
		"{kind: provider, domain: a.example, apiKey: a, api_key: b}":                                                               false,
		"{kind: provider, domain: a.example, apiKeyHeader: X-Key}":                                                                 false,
		"{kind: provider, domain: a.example, apiKey: a, apiKeyHeader: X-Key, apiKeyParam: b}":                                      false,
		"{kind: provider, domain: a.example, apiKey: a, auth: {type: bearer, token: b}}":                                           false,
		"{kind: provider, domain: a.example, auth: {type: bearer}}":                                                                false,
		"{kind: provider, domain: a.example, auth: {type: bearer, token: a, scope: b}}":                                            false,
		"{kind: provider, domain: a.example, auth: {type: digest, token: a}}":                                                      false,
	} {
		documents, err := definition.Read("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(documents[0].JSON(), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); (err == nil) != good {
			t.Errorf("%s: the schema says %v", text, err)
		}
		if _, err := Load([]string{write(t, filepath.Join(t.TempDir(), "p.yaml"), text)}, nil, environment); (err == nil) != good {
			t.Errorf("%s: Load says %v", text, err)
		}
	}
}
