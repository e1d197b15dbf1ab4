package quota

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/internal/definition"
)

// ProviderSchema is the JSON Schema of provider files, for editors. What is
// right by it may still be refused, as only Load can look at secrets.
func ProviderSchema() []byte {
	return definition.Schema(kindProvider, "Pawl provider", "The limits and the credential of one domain: how often it may be called, and with which key. "+
		"Any text may be ${ENV_NAME} or file:PATH, relative to the file; secrets are held in memory only.", written{})
}

// DescribeSchema says how the fields depend on each other.
func (written) DescribeSchema(s *jsonschema.Schema) {
	s.Properties["kind"] = &jsonschema.Schema{Const: new(any(kindProvider))}
	s.PropertyOrder, s.Required = append([]string{"kind"}, s.PropertyOrder...), []string{"kind", "domain"}
	s.Properties["domain"].Examples = []any{"api.example.com", "localhost:8080"}
	s.Properties["period"].Examples = []any{"30s", "1m", "1d"}
	s.DependentRequired = map[string][]string{"limit": {"period"}, "period": {"limit"}}
	has := func(names ...string) *jsonschema.Schema {
		var any []*jsonschema.Schema
		for _, name := range names {
			any = append(any, &jsonschema.Schema{Required: []string{name}})
		}
		return &jsonschema.Schema{AnyOf: any}
	}
	key := []string{"apiKey", "api_key"}
	param, header := []string{"apiKeyParam", "api_key_param"}, []string{"apiKeyHeader", "api_key_header"}
	for _, name := range header {
		s.Properties[name].Pattern = headerPattern
	}
	s.AllOf = append(s.AllOf,
		&jsonschema.Schema{Not: &jsonschema.Schema{AllOf: []*jsonschema.Schema{has(param...), has(header...)}}},
		&jsonschema.Schema{If: has(append(param, header...)...), Then: has(key...)},
		&jsonschema.Schema{If: has(key...), Then: &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{"auth"}}}},
	)
}

// DescribeSchema makes a form for each type.
func (writtenAuth) DescribeSchema(s *jsonschema.Schema) {
	var forms []*jsonschema.Schema
	for _, auth := range []Auth{AuthBearer, AuthBasic, AuthOAuth2} {
		form := &jsonschema.Schema{Type: "object", AdditionalProperties: s.AdditionalProperties, Required: []string{"type"}}
		form.Properties = map[string]*jsonschema.Schema{"type": {Const: new(any(auth))}}
		form.PropertyOrder = append([]string{"type"}, authFields()[auth]...)
		for _, name := range authFields()[auth] {
			form.Properties[name] = s.Properties[name]
			if name != "clientAuth" && name != "scope" {
				form.Required = append(form.Required, name)
			}
		}
		forms = append(forms, form)
	}
	forms[2].Description = "The client credentials grant of OAuth2."
	*s = jsonschema.Schema{OneOf: forms}
}
