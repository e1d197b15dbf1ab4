package api

import (
	"context"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	hookspec "github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/price"
	"github.com/pawlrun/pawl/internal/quota"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// definitionSchemas are the JSON Schemas of what people define in files.
func definitionSchemas() map[string][]byte {
	return map[string][]byte{"source": spec.Schema(), "provider": quota.ProviderSchema(), "schedule": graphspec.Schema(), "calendar": calendarspec.Schema(), "hook": hookspec.Schema(), "prices": price.Schema()}
}

const schemaCursor = "schema"

func (a *API) listSchemas(_ context.Context, in *PageInput) (*pageOutput[client.SchemaPlace], error) {
	after, err := in.place(schemaCursor)
	if err != nil {
		return nil, err
	}
	kind := func(k string) string { return k }
	list := following(sortedKeys(definitionSchemas()), after, in.Limit+1, kind)
	return &pageOutput[client.SchemaPlace]{cutPage(list, in.Limit, schemaCursor, kind, func(k string) client.SchemaPlace { return client.SchemaPlace{Kind: k, Path: "/api/v1/schemas/" + k} })}, nil
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
