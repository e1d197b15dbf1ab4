package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// routes is every route there is, with the scope that it needs.
func (a *API) routes() {
	add(a, route{method: "GET", path: "/healthz", scope: open, id: "getHealth", tag: "Health", summary: "Is the process alive"}, a.getHealth)
	add(a, route{method: "GET", path: "/readyz", scope: open, id: "getReadiness", tag: "Health", summary: "Can the process do its work", errors: []int{503}}, a.getReadiness)
	add(a, route{method: "GET", path: "/metrics", scope: "metrics:read", id: "getMetrics", tag: "Health", summary: "Numbers for Prometheus", produces: "text/plain"}, a.getMetrics)

	add(a, route{method: "GET", path: "/openapi.json", scope: "docs:read", id: "getOpenAPI", tag: "Description", summary: "This API as an OpenAPI document", produces: "application/json"}, a.getDocument)
	add(a, route{method: "GET", path: "/docs", scope: "docs:read", id: "getDocs", tag: "Description", summary: "This API as a page to read", produces: "text/html"}, a.getDocs)

	add(a, route{method: "POST", path: "/api/v1/jobs", scope: "jobs:write", id: "createJob", tag: "Jobs", summary: "Enqueue a job", status: http.StatusCreated}, a.createJob)
	add(a, route{method: "GET", path: "/api/v1/jobs", scope: "jobs:read", id: "listJobs", tag: "Jobs", summary: "List jobs, the newest first"}, a.listJobs)
	add(a, route{method: "GET", path: "/api/v1/jobs/{id}", scope: "jobs:read", id: "getJob", tag: "Jobs", summary: "Show a job", errors: []int{404}}, a.getJob)
	add(a, route{method: "DELETE", path: "/api/v1/jobs/{id}", scope: "jobs:write", id: "cancelJob", tag: "Jobs", summary: "Cancel a job", status: http.StatusNoContent, errors: []int{404, 409}}, a.cancelJob)
	add(a, route{method: "POST", path: "/api/v1/jobs/{id}/retry", scope: "jobs:write", id: "retryJob", tag: "Jobs", summary: "Run a failed job again, now", errors: []int{404, 409}}, a.retryJob)

	add(a, route{method: "GET", path: "/api/v1/stream", scope: "stream:read", id: "stream", tag: "Events", summary: "Follow every change of state, as server-sent events", produces: "text/event-stream", endless: true}, a.stream)

	add(a, route{method: "POST", path: "/api/v1/tokens", scope: "tokens:admin", id: "createToken", tag: "Tokens", summary: "Create a token; its text is shown this once", status: http.StatusCreated}, a.createToken)
	add(a, route{method: "GET", path: "/api/v1/tokens", scope: "tokens:read", id: "listTokens", tag: "Tokens", summary: "List your tokens, or everybody's with tokens:admin"}, a.listTokens)
	add(a, route{method: "GET", path: "/api/v1/tokens/{id}", scope: "tokens:read", id: "getToken", tag: "Tokens", summary: "Show a token", errors: []int{404}}, a.getToken)
	add(a, route{method: "DELETE", path: "/api/v1/tokens/{id}", scope: "tokens:write", id: "revokeToken", tag: "Tokens", summary: "Revoke a token of yours, or anybody's with tokens:admin", status: http.StatusNoContent, errors: []int{404}}, a.revokeToken)
	add(a, route{method: "POST", path: "/api/v1/tokens/{id}/revoke", scope: "tokens:write", id: "revokeTokenByPost", tag: "Tokens", summary: "Revoke a token, for clients that cannot DELETE", status: http.StatusNoContent, errors: []int{404}}, a.revokeToken)
}

// route is one line of the list.
type route struct {
	method, path string
	scope        string // open, or what the caller must be allowed
	id           string // the operation's, for clients that are generated
	tag          string
	summary      string
	status       int    // of success; 0 is 200
	errors       []int  // that this route has beside the usual ones
	produces     string // content type, if it is not JSON
	endless      bool   // may take longer than handlerTimeout
}

// add makes a handler answer a route. Its errors become problems.
func add[I, O any](a *API, r route, handler func(context.Context, *I) (*O, error)) {
	if r.scope == open {
		a.openPaths[r.path] = true
	} else {
		resource, _, _ := strings.Cut(r.scope, ":")
		a.resources[resource] = true
	}
	huma.Register(a.huma, a.operation(r), func(ctx context.Context, in *I) (*O, error) {
		if !r.endless {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, handlerTimeout)
			defer cancel()
		}
		out, err := handler(ctx, in)
		if err != nil {
			return nil, a.tell(ctx, err)
		}
		return out, nil
	})
}

// operation describes a route to huma.
func (a *API) operation(r route) huma.Operation {
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Tags: []string{r.tag},
		DefaultStatus: r.status, MaxBodyBytes: a.maxBody() + 1, BodyReadTimeout: bodyTimeout,
		Security:    securityOf(r.scope),
		Middlewares: huma.Middlewares{a.requireScope(r.scope)},
		Responses:   a.errorResponses(r),
	}
	if r.scope != open {
		op.Description = "Needs the scope `" + r.scope + "`."
	}
	if r.produces != "" {
		schema := &huma.Schema{Type: huma.TypeString}
		if r.produces == "application/json" {
			schema.Type = huma.TypeObject
		}
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{r.produces: {Schema: schema}}}
	}
	return op
}

// requireScope stands before a handler, and before its request is read.
func (a *API) requireScope(scope string) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if scope != open {
			if err := require(callOf(ctx.Context()).token, scope); err != nil {
				a.refuse(ctx, err)
				return
			}
		}
		next(ctx)
	}
}
