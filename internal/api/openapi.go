package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
)

// bearer is the name of the one way to prove who one is.
const bearer = "bearer"

const description = `Pawl runs things later, on time, and as often as promised.

Instants are RFC 3339 in UTC with milliseconds. Lists take ` + "`limit` and `cursor`" + ` and answer
` + "`items` and `nextCursor`" + `, which is null at the end. Every error is a Problem. A POST with the
header ` + "`Idempotency-Key`" + ` is acted on once, however often it is sent.`

// newDocument is the OpenAPI document before there are routes.
func (s *surface) newDocument() *huma.OpenAPI {
	schemas := newSchemas()
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Pawl", Version: s.version, Description: description,
			License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "The server that this document is from."}},
		Components: &huma.Components{
			Schemas: schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {Type: "http", Scheme: "bearer", Description: "A token, as `pawl token create` makes it. Its scopes determine what it may do: `read`, `write`, `admin`, one of a resource such as `jobs:read`, or `*`."},
			},
		},
		Security: securityOf("read"),
		Tags: []*huma.Tag{
			{Name: "Lanes", Description: "Workflows, sources and schedules: status, next run, and why."},
			{Name: "Workflows", Description: "Scripts that react to other systems and act on them."},
			{Name: "Inputs", Description: "What workflows picked up, and the calls they made about it."},
			{Name: "Sources", Description: "What is fetched into tables, on a schedule."},
			{Name: "Schedules", Description: "Graphs that run at their instants, each instant once."},
			{Name: "Calendars", Description: "Days that schedules leave out together."},
			{Name: "Grants", Description: "Which graphs may run in whose name, and what they may cost."},
			{Name: "Billing", Description: "Who pays for runs of graphs, and what they cost."},
			{Name: "Runs", Description: "Attempts of lanes, and their outcomes."},
			{Name: "Approvals", Description: "What people are asked, and what they decide about runs."},
			{Name: "Connections", Description: "What scripts may touch."},
			{Name: "Hooks", Description: "What others send: webhooks."},
			{Name: "Workers", Description: "Tasks that programs of users serve, and what these programs say."},
			{Name: "Jobs", Description: "The queue: what must run later."},
			{Name: "Events", Description: "What happens, as it happens."},
			{Name: "Tokens", Description: "Who may ask."},
			{Name: "Health", Description: "For those who watch the process."},
			{Name: "Description", Description: "What you are reading."},
		},
	}
}

// securityOf names the scope beside the scheme, where clients can read it.
func securityOf(scope string) []map[string][]string {
	switch scope {
	case open:
		return []map[string][]string{{}}
	case anyToken:
		return []map[string][]string{{bearer: {}}}
	}
	return []map[string][]string{{bearer: {scope}}}
}

// errorResponses describes how a route can fail.
func (s *surface) errorResponses(r route) map[string]*huma.Response {
	statuses := append([]int{http.StatusInternalServerError}, r.errors...)
	if r.scope != open {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
	}
	if r.method == http.MethodPost || r.method == http.MethodPut || r.method == http.MethodPatch {
		statuses = append(statuses, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	schema := s.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[client.Problem](), true, "Problem")
	out := map[string]*huma.Response{}
	for _, status := range statuses {
		out[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
		}
	}
	return out
}

// describe finishes the document once all routes are there.
func (s *surface) describe() {
	doc := s.huma.OpenAPI()
	schemas := doc.Components.Schemas.Map()
	delete(schemas, "ErrorModel") // huma's own; transform never lets it out
	delete(schemas, "ErrorDetail")
	for name, schema := range schemas {
		markNullable(schema, doc.Components.Schemas.TypeFromRef(schemasPrefix+name))
		if !strings.HasSuffix(name, "Request") && !strings.HasSuffix(name, "V1Input") {
			schema.AdditionalProperties = nil // answers may get more fields
		}
	}
	if s.schedules {
		s.describeExecution(doc)
	}
	ready := doc.Paths["/readyz"].Get.Responses
	ready["503"] = &huma.Response{Description: "Something does not work; see the checks.", Content: ready["200"].Content}
}

// executionPath is the route of the execution service, which is served beside
// this API and described with it.
const executionPath = "/api/internal/graphs/{graphId}/runs"

// describeExecution adds the route by which other programs run graphs.
func (s *surface) describeExecution(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas
	text := func(longest int) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, MaxLength: &longest}
	}
	responses := s.errorResponses(route{method: http.MethodPost, scope: "graphs:execute", errors: []int{http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict}})
	responses["200"] = &huma.Response{
		Description: "The graph ran, or is known not to have run; see ok.",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[contract.RunAnswerV1](), true, "RunAnswerV1")}},
	}
	request := schemas.Schema(reflect.TypeFor[contract.RunRequestV1](), true, "RunRequestV1")
	doc.AddOperation(&huma.Operation{
		OperationID: "runGraph", Method: http.MethodPost, Path: executionPath, Tags: []string{"Schedules"},
		Summary:     "Run a graph in the name of a grant, once for each Idempotency-Key",
		Description: "Needs the service token, or the scope `graphs:execute`. With a key that is known the answer that was given is given again; while the graph still runs it is refused with 409, and for another request with 422.",
		Security:    securityOf("graphs:execute"),
		Parameters: []*huma.Param{
			{Name: "graphId", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "EXECUTOR:GRAPH", Example: "langgraph:poet"},
			{Name: "Idempotency-Key", In: "header", Required: true, Schema: text(contract.MaxKey), Description: "Names what is run: it runs once.", Example: "01a1df2f-7a0e-7b01-b589-1e8549bbc357:2030-01-31T09:00:00.000Z"},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: request}}},
		Responses:   responses,
	})
	for _, name := range []string{"RunRequestV1", "RunAnswerV1"} { // both may get more fields
		schemas.Map()[name].AdditionalProperties = nil
	}
}

func (s *surface) makeDocument() ([]byte, error) { return json.Marshal(s.huma.OpenAPI()) }

// written is an answer that is not JSON made by huma.
type written struct {
	ContentType string `header:"Content-Type"`
	Policy      string `header:"Content-Security-Policy" hidden:"true"`
	Body        []byte `hidden:"true"`
}

func (a *API) getDocument(context.Context, *struct{}) (*written, error) {
	text, err := a.surface.document()
	return &written{ContentType: "application/json", Body: text}, err
}

func (a *API) getDocs(context.Context, *struct{}) (*written, error) {
	text, err := a.surface.page()
	return &written{ContentType: "text/html; charset=utf-8", Policy: pagePolicy(), Body: text}, err
}

// operations lists the operations of the document in the order of its tags.
func operations(doc *huma.OpenAPI) []*huma.Operation {
	var out []*huma.Operation
	for _, path := range sortedKeys(doc.Paths) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				out = append(out, op)
			}
		}
	}
	rank := func(op *huma.Operation) int {
		return slices.IndexFunc(doc.Tags, func(t *huma.Tag) bool { return len(op.Tags) > 0 && t.Name == op.Tags[0] })
	}
	slices.SortStableFunc(out, func(a, b *huma.Operation) int { return rank(a) - rank(b) })
	return out
}
