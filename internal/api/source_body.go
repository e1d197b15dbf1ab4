package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// maxDefinitionBody is the most bytes of a body that is a definition.
const maxDefinitionBody = definition.LargestFile

// DefinitionBody is a body that is a definition, in JSON or in YAML. What is
// wrong with it is told by package spec, which knows more than a schema.
type DefinitionBody struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/yaml"`
}

// source reads the definition of a source. JSON may leave out the name, which
// is then this one.
func (b *DefinitionBody) source(name string) (spec.Definition, error) {
	format := "application/json"
	if b.ContentType != "" {
		format, _, _ = mime.ParseMediaType(b.ContentType)
	}
	switch format {
	case "application/json":
		return sourceFromJSON(b.RawBody, name)
	case "application/yaml", "application/x-yaml", "text/yaml":
		return sourceFromYAML(b.RawBody, name)
	}
	return spec.Definition{}, newProblem(http.StatusUnsupportedMediaType, codeUnsupportedMedia, fmt.Sprintf("the body is said to be %q", b.ContentType),
		"Send the header Content-Type: application/json or Content-Type: application/yaml.")
}

func sourceFromJSON(text []byte, name string) (spec.Definition, error) {
	var whole any
	if err := decode(text, &whole); err != nil {
		return spec.Definition{}, newProblem(http.StatusBadRequest, codeMalformed, "the body is not valid JSON: "+err.Error(), "", client.Fault{Message: err.Error()})
	}
	if fields, ok := whole.(map[string]any); ok {
		if _, named := fields["name"]; !named {
			text = withName(text, name, len(fields) > 0)
		}
	}
	return spec.FromJSON(text)
}

// withName adds the name to a JSON object; more reports whether it has other
// fields.
func withName(object []byte, name string, more bool) []byte {
	quoted, _ := json.Marshal(name) // text always works
	_, rest, _ := bytes.Cut(object, []byte("{"))
	comma := ""
	if more {
		comma = ","
	}
	return fmt.Appendf(nil, `{"name":%s%s%s`, quoted, comma, rest)
}

func sourceFromYAML(text []byte, name string) (spec.Definition, error) {
	list, err := spec.Parse(name+".yaml", text)
	if err != nil {
		return spec.Definition{}, err
	}
	if len(list) != 1 {
		return spec.Definition{}, invalid("Send one definition; pawl apply takes files of many.", client.Fault{Message: fmt.Sprintf("must be one definition, and has %d", len(list))})
	}
	return list[0], nil
}
