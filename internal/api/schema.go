package api

import (
	"context"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/quota"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// definitionSchemas are the JSON Schemas of what people define in files.
func definitionSchemas() map[string][]byte {
	return map[string][]byte{"source": spec.Schema(), "provider": quota.ProviderSchema(), "schedule": graphspec.Schema()}
}

// SchemaPlace is where the JSON Schema of a kind is.
type SchemaPlace struct {
	Kind string `json:"kind" example:"source"`
	Path string `json:"path" example:"/api/v1/schemas/source"`
}

type listSchemasOutput struct{ Body Page[SchemaPlace] }

const schemaCursor = "schema"

func (a *API) listSchemas(_ context.Context, in *PageInput) (*listSchemasOutput, error) {
	after, err := in.place(schemaCursor)
	if err != nil {
		return nil, err
	}
	kind := func(k string) string { return k }
	list := following(sortedKeys(definitionSchemas()), after, in.Limit+1, kind)
	return &listSchemasOutput{cutPage(list, in.Limit, schemaCursor, kind, func(k string) SchemaPlace { return SchemaPlace{k, "/api/v1/schemas/" + k} })}, nil
}

// SchemaPath is the input of requests about one schema.
type SchemaPath struct {
	Kind string `path:"kind" example:"source" doc:"What is defined."`
}

func (a *API) getSchema(_ context.Context, in *SchemaPath) (*written, error) {
	all := definitionSchemas()
	text, ok := all[in.Kind]
	if !ok {
		return nil, &pawl.Error{Code: pawl.CodeNotFound, Op: "find schema", Msg: fmt.Sprintf("there is no schema of the kind %q", in.Kind), Hint: choicesHint(in.Kind, "kinds", sortedKeys(all))}
	}
	return &written{ContentType: "application/json", Body: text}, nil
}
