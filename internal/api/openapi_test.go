package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// The document is whole: every operation can be called from it.
func TestOpenAPIDocumentIsWhole(t *testing.T) {
	both(t, func(r *rig) {
		var doc struct {
			OpenAPI    string `json:"openapi"`
			Info       struct{ Title, Version string }
			Components struct {
				Schemas         map[string]map[string]any
				SecuritySchemes map[string]map[string]any
			}
		}
		p := r.do("GET", "/openapi.json", nil).want(http.StatusOK)
		p.into(&doc)
		if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Title != "Pawl" || doc.Info.Version != "1.2.3" || doc.Components.SecuritySchemes[bearer]["scheme"] != "bearer" {
			t.Errorf("%+v", doc)
		}
		if doc.Components.Schemas["Problem"] == nil || doc.Components.Schemas["ErrorModel"] != nil {
			t.Errorf("schemas %v", sortedKeys(doc.Components.Schemas))
		}
		for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllSubmatch(p.body, -1) {
			if doc.Components.Schemas[string(ref[1])] == nil {
				t.Errorf("there is no schema %s", ref[1])
			}
		}
		for name, schema := range doc.Components.Schemas {
			request := strings.HasSuffix(name, "Request") || strings.HasSuffix(name, "V1Input")
			if closed := schema["additionalProperties"] == false; closed != request {
				t.Errorf("%s is closed: %v; requests are, answers may grow", name, closed)
			}
		}
		ids := map[string]bool{}
		for _, op := range r.operations() {
			checkOperation(t, op)
			id, _ := op.raw["operationId"].(string)
			if ids[id] {
				t.Errorf("two operations are called %s", id)
			}
			ids[id] = true
		}
	})
}

// The document is valid by the rules of OpenAPI 3.1, as others read it, and tells
// where the server is.
func TestOpenAPIDocumentIsValid(t *testing.T) {
	both(t, func(r *rig) {
		raw := r.do("GET", "/openapi.json", nil).want(http.StatusOK).body
		doc, err := openapi3.NewLoader().LoadFromData(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaDefaultsValidation()); err != nil {
			t.Error(err)
		}
		if len(doc.Servers) != 1 || doc.Servers[0].URL != "/" {
			t.Errorf("servers %v", doc.Servers)
		}
		if bytes.Contains(raw, []byte(`["","null"]`)) || bytes.Contains(raw, []byte(`"type":""`)) {
			t.Error("a schema has no type")
		}
		// The one route that is served beside the API is described with it.
		run := doc.Paths.Value("/api/internal/graphs/{graphId}/runs")
		if run == nil || run.Post == nil || run.Post.RequestBody == nil || run.Post.Responses.Value("200") == nil || run.Post.Responses.Value("402") == nil || run.Post.Parameters.GetByInAndName("header", "Idempotency-Key") == nil {
			t.Errorf("the execution route is not described: %+v", run)
		}
	})
}

func checkOperation(t *testing.T, op operation) {
	t.Helper()
	name := op.method + " " + op.path
	for _, field := range []string{"operationId", "summary", "tags", "security", "responses"} {
		if v := op.raw[field]; v == nil || v == "" {
			t.Errorf("%s has no %s", name, field)
		}
	}
	responses, _ := op.raw["responses"].(map[string]any)
	good := 0
	for status, response := range responses {
		raw, _ := json.Marshal(response)
		switch {
		case status < "400":
			good++
		case op.path != "/readyz" && !strings.Contains(string(raw), `"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}`):
			t.Errorf("%s: %s is no Problem: %s", name, status, raw)
		}
	}
	if good < 1 || good > 2 || responses["500"] == nil {
		t.Errorf("%s has %d good answers and these: %v", name, good, sortedKeys(responses))
	}
	if op.scope != "" && (responses["401"] == nil || responses["403"] == nil) {
		t.Errorf("%s does not tell of 401 and 403", name)
	}
	if op.raw["requestBody"] != nil && (responses["400"] == nil || responses["413"] == nil || responses["415"] == nil || responses["422"] == nil) {
		t.Errorf("%s takes a body and does not tell how that fails", name)
	}
	if strings.Contains(op.path, "{") && responses["404"] == nil {
		t.Errorf("%s does not tell of 404", name)
	}
}

// The page needs nothing from anywhere, and its policy allows nothing else.
func TestDocsPageStandsAlone(t *testing.T) {
	both(t, func(r *rig) {
		p := r.do("GET", "/docs", nil).want(http.StatusOK)
		page := string(p.body)
		if p.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("content type %q", p.header.Get("Content-Type"))
		}
		for _, op := range r.operations() {
			if !strings.Contains(page, "<code>"+op.path+"</code>") {
				t.Errorf("%s is not on the page", op.path)
			}
		}
		if outside := regexp.MustCompile(`(?i)<(script|img|link|iframe|object|form)|(src|href)="[^#]|@import|url\(`).FindString(page); outside != "" {
			t.Errorf("the page has %q", outside)
		}
		if strings.Contains(page, "ZgotmplZ") {
			t.Error("the template refused something")
		}
		_, style, _ := strings.Cut(page, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		sum := sha256.Sum256([]byte(style))
		policy := p.header.Values("Content-Security-Policy")
		if len(policy) != 1 || !strings.HasPrefix(policy[0], "default-src 'none'") || !strings.Contains(policy[0], base64.StdEncoding.EncodeToString(sum[:])) || strings.Contains(policy[0], "unsafe") {
			t.Errorf("policy %q", policy)
		}
	})
}
