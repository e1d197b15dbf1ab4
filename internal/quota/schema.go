package quota

import _ "embed"

//go:embed provider.schema.json
var providerSchema string

// ProviderSchema is the JSON Schema of provider files, for editors. What is
// right by it may still be refused, as only Load can look at secrets.
func ProviderSchema() []byte { return []byte(providerSchema) }
