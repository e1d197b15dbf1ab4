package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	hookspec "github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/price"
	"github.com/pawlrun/pawl/internal/quota"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
)

// definitionSchemas are the JSON Schemas of the program, by kind.
func definitionSchemas() map[string][]byte {
	return map[string][]byte{"source": sourcespec.Schema(), "schedule": graphspec.Schema(), "provider": quota.ProviderSchema(), "calendar": calendarspec.Schema(), "hook": hookspec.Schema(), "prices": price.Schema()}
}

// schema is a JSON Schema whose properties stay in the order of the file.
type schema = yaml.MapSlice

func field[T any](s schema, name string) (out T) {
	for _, item := range s {
		if item.Key == name {
			out, _ = item.Value.(T)
		}
	}
	return out
}

func definitionReference(t *testing.T) string {
	p := &page{}
	p.say("# Definitions\n\nWhat `pawl apply`, `pawl serve DIR` and the server's files accept, from the JSON Schemas in\n[docs/schemas](../schemas), which editors can use, too. Workflows are TypeScript, and told in\n[workflows.md](../workflows.md), like connections; executors are told in [schedules.md](../schedules.md).")
	for _, kind := range []string{"source", "schedule", "calendar", "hook", "provider", "prices"} {
		file := kind + ".schema.json"
		var s schema
		if err := yaml.UnmarshalWithOptions(definitionSchemas()[kind], &s, yaml.UseOrderedMap()); err != nil {
			t.Fatal(err)
		}
		p.say("\n## %s\n\n%s ([%s](../schemas/%s))\n", field[string](s, "title"), field[string](s, "description"), file, file)
		p.table("Field", "Type", "Default", "Meaning")
		describeFields(p, s, s, "", "**Required.** ")
	}
	return p.String()
}

// describeFields adds a row for every property, and for those below it; need is
// what is said of those that are required.
func describeFields(p *page, whole, s schema, above, need string) {
	required := field[[]any](s, "required")
	for _, item := range field[schema](s, "properties") {
		name, _ := item.Key.(string)
		value, _ := item.Value.(schema)
		def := referred(whole, value)
		meaning := field[string](value, "description")
		if meaning == "" {
			meaning = field[string](def, "description")
		}
		if slices.Contains(required, any(name)) {
			meaning = strings.TrimSpace(need + meaning)
		}
		p.row(code(above+name), typeOf(whole, def), code(defaultOf(def)), meaning)
		describeFields(p, whole, def, above+name+".", need)
		for _, form := range field[[]any](def, "oneOf") {
			form, _ := form.(schema)
			describeFields(p, whole, referred(whole, form), above+name+".", "**Required** in this form. ")
		}
		describeFields(p, whole, referred(whole, field[schema](def, "items")), above+name+"[].", need)
		describeFields(p, whole, referred(whole, field[schema](def, "additionalProperties")), above+name+".NAME.", need)
	}
}

// referred follows a reference within the schema.
func referred(whole, s schema) schema {
	ref, found := strings.CutPrefix(field[string](s, "$ref"), "#/$defs/")
	if !found {
		return s
	}
	return field[schema](field[schema](whole, "$defs"), ref)
}

func typeOf(whole, s schema) string {
	var words []string
	switch typ := field[any](s, "type").(type) {
	case string:
		words = append(words, typ)
	case []any:
		for _, t := range typ {
			words = append(words, fmt.Sprint(t))
		}
	}
	if enum := field[[]any](s, "enum"); enum != nil {
		words = nil
		for _, e := range enum {
			words = append(words, code(fmt.Sprint(e)))
		}
	}
	if only := field[any](s, "const"); only != nil {
		words = []string{code(fmt.Sprint(only))}
	}
	for _, form := range field[[]any](s, "oneOf") {
		form, _ := form.(schema)
		if word := typeOf(whole, referred(whole, form)); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if items := referred(whole, field[schema](s, "items")); items != nil {
		words = []string{"array of " + typeOf(whole, items)}
	}
	return strings.Join(words, " or ")
}

func defaultOf(s schema) string {
	switch d := field[any](s, "default").(type) {
	case nil:
		return ""
	case string:
		return d
	case schema:
		return "{}"
	default:
		text, _ := json.Marshal(d) // it was JSON
		return string(text)
	}
}

// openAPI is what is told of the OpenAPI document.
type openAPI struct {
	Tags []struct {
		Name        string
		Description string
	}
	Paths map[string]map[string]struct {
		Summary     string
		OperationID string
		Tags        []string
		Security    []map[string][]string
		Responses   map[string]any
	}
}

func apiReference(t *testing.T) string {
	h := serve(t)
	raw, err := h.api.Get(t.Context(), "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	h.end()
	var doc openAPI
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	p := &page{}
	p.say("# API\n\nThe routes of a server. `GET /openapi.json` has them with all fields, `GET /docs` as a page.\n")
	p.say("Every request but those without a scope carries `Authorization: Bearer TOKEN`. Errors are\n`application/problem+json` with a `code`. Lists take `limit` and `cursor`. A POST with an\n`Idempotency-Key` is acted on once. Codes are those beside 401, 403, 422, 500 and 503, and, with a\nbody, 400, 413 and 415.")
	for _, tag := range doc.Tags {
		p.say("\n## %s\n\n%s\n", tag.Name, tag.Description)
		p.table("Method", "Path", "Scope", "What it does", "Codes")
		for _, path := range sortedPaths(doc) {
			for _, method := range []string{"get", "post", "put", "patch", "delete"} {
				op, ok := doc.Paths[path][method]
				if !ok || !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				var scopes []string
				for _, s := range op.Security {
					scopes = append(scopes, s["bearer"]...)
				}
				p.row(code(strings.ToUpper(method)), code(path), code(strings.Join(scopes, " ")), op.Summary, codesOf(op.Responses))
			}
		}
	}
	return p.String()
}

func sortedPaths(doc openAPI) (paths []string) {
	for path := range doc.Paths {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// codesOf are the codes that not all routes have.
func codesOf(responses map[string]any) string {
	var codes []string
	for status := range responses {
		if !slices.Contains([]string{"400", "401", "403", "413", "415", "422", "500", "503"}, status) {
			codes = append(codes, status)
		}
	}
	slices.Sort(codes)
	return strings.Join(codes, ", ")
}
