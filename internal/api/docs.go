package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page is part of the program
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var pageTemplate string

//go:embed docs.css
var pageStyle string

// pagePolicy lets the page have its own style and nothing else: no script, no
// image, no other address.
func pagePolicy() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}

// makePage renders the OpenAPI document for people.
func (s *surface) makePage() ([]byte, error) {
	t, err := template.New("docs").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("read the template of the docs: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, pageModel(s.huma.OpenAPI())); err != nil {
		return nil, fmt.Errorf("write the docs: %w", err)
	}
	return b.Bytes(), nil
}

// What the template shows.
type (
	docsPage struct {
		Title, Version string
		About          []string // paragraphs
		Style          template.CSS
		Groups         []docsGroup
		Schemas        []docsSchema
	}
	docsGroup struct {
		Name, About string
		Operations  []docsOperation
	}
	docsOperation struct {
		ID, Method, Path, Summary, Scope string
		Parameters                       []docsField
		Body, Answer                     string // names of schemas
		Status                           string // of success
		Errors                           []string
	}
	docsSchema struct {
		Name   string
		Fields []docsField
	}
	docsField struct {
		Name, In, Type, About string
		Ref                   string // name of a schema
		Required              bool
	}
)

func pageModel(doc *huma.OpenAPI) docsPage {
	p := docsPage{
		Title: doc.Info.Title, Version: doc.Info.Version, About: strings.Split(strings.ReplaceAll(doc.Info.Description, "`", ""), "\n\n"),
		Style: template.CSS(pageStyle), //nolint:gosec // our own file
	}
	for _, tag := range doc.Tags {
		g := docsGroup{Name: tag.Name, About: tag.Description}
		for _, op := range operations(doc) {
			if slices.Contains(op.Tags, tag.Name) {
				g.Operations = append(g.Operations, operationModel(op))
			}
		}
		p.Groups = append(p.Groups, g)
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range sortedKeys(schemas) {
		p.Schemas = append(p.Schemas, docsSchema{name, fieldModels(schemas[name])})
	}
	return p
}

func operationModel(op *huma.Operation) docsOperation {
	o := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary}
	for _, s := range op.Security {
		o.Scope = strings.Join(s[bearer], " ")
	}
	for _, p := range op.Parameters {
		f := fieldModel(p.Name, p.Schema, p.Required)
		f.In = p.In
		o.Parameters = append(o.Parameters, f)
	}
	if op.RequestBody != nil {
		o.Body = schemaName(op.RequestBody.Content["application/json"])
	}
	for _, status := range sortedKeys(op.Responses) {
		if status >= "400" {
			o.Errors = append(o.Errors, status+" "+op.Responses[status].Description)
			continue
		}
		o.Answer = schemaName(op.Responses[status].Content["application/json"])
		if o.Status != "" {
			o.Status += " or "
		}
		o.Status += status
	}
	return o
}

func schemaName(m *huma.MediaType) string {
	if m == nil || m.Schema == nil {
		return ""
	}
	return refName(m.Schema)
}

func refName(s *huma.Schema) string { return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] }

func fieldModels(s *huma.Schema) []docsField {
	var out []docsField
	for _, name := range sortedKeys(s.Properties) {
		out = append(out, fieldModel(name, s.Properties[name], slices.Contains(s.Required, name)))
	}
	slices.SortStableFunc(out, func(a, b docsField) int { // what must be there comes first
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return out
}

func fieldModel(name string, s *huma.Schema, required bool) docsField {
	f := docsField{Name: name, Type: typeWords(s), About: s.Description, Required: required, Ref: refName(s)}
	if s.Items != nil && s.Items.Ref != "" {
		f.Ref = refName(s.Items)
	}
	if len(s.AnyOf) > 0 { // of Maybe
		f.Ref, f.Type = refName(s.AnyOf[0]), "null or"
	}
	if len(s.Examples) > 0 {
		f.About = strings.TrimSpace(f.About + fmt.Sprintf(" Example: %v", s.Examples[0]))
	}
	if s.Default != nil {
		f.About = strings.TrimSpace(f.About + fmt.Sprintf(" Default: %v", s.Default))
	}
	return f
}

// typeWords says what a value looks like.
func typeWords(s *huma.Schema) string {
	words := s.Type
	switch {
	case s.Ref != "":
		words = ""
	case s.Type == "":
		words = "any"
	case s.Items != nil:
		words = "array of " + typeWords(s.Items)
	case len(s.Enum) > 0:
		words = strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", " | "), "[]")
	case s.Format != "" && s.Type == huma.TypeString:
		words = s.Format
	}
	if s.Minimum != nil && s.Maximum != nil {
		words += fmt.Sprintf(" %v to %v", *s.Minimum, *s.Maximum)
	}
	if s.Nullable {
		words += " or null"
	}
	return words
}
