package api

import (
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// lostPattern takes what no route takes.
const lostPattern = "/"

// shape is all that decides which routes there are and how they are described.
type shape struct {
	version string
	maxBody int64 // bytes

	workflows, sources, fetcher, schedules, tools, hooks, workers bool // are there
}

// surface is the routes of an API and their description. Handlers find the API
// that is asked in the call, so APIs of the same shape share one.
type surface struct {
	shape
	mux       *http.ServeMux
	huma      huma.API
	openPaths map[string]bool // that need no token
	resources map[string]bool // that scopes can name
	rules     []rule          // of every route
	mostBody  int64           // bytes of a body that the most generous route takes

	document func() ([]byte, error) // the OpenAPI document, made once
	page     func() ([]byte, error) // the page of /docs, made once
}

// surfaces are those that were made, by shape: describing every route takes
// longer than most tests of one.
var surfaces sync.Map //nolint:gochecknoglobals // see above

func surfaceOf(of shape) *surface {
	if known, ok := surfaces.Load(of); ok {
		return known.(*surface)
	}
	known, _ := surfaces.LoadOrStore(of, newSurface(of))
	return known.(*surface)
}

func newSurface(of shape) *surface {
	s := &surface{shape: of, mux: http.NewServeMux(), openPaths: map[string]bool{}, resources: map[string]bool{}}
	format := jsonFormat()
	s.huma = humago.New(s.mux, huma.Config{ // turns off all that huma would serve by itself
		OpenAPI:                      s.newDocument(),
		Formats:                      map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{s.transform},
	})
	s.routes()
	s.describe()
	s.document = sync.OnceValues(s.makeDocument)
	s.page = sync.OnceValues(s.makePage)
	s.mux.HandleFunc(lostPattern, func(w http.ResponseWriter, r *http.Request) { callOf(r.Context()).api.lost(w, r) })
	return s
}
