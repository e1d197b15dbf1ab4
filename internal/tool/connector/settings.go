package connector

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Settings are one definition of a connection, or of an executor, and what the
// process gives to it. Who makes it reads the fields into a struct:
//
//	var written struct {
//		URL     definition.Secret `json:"url" definition:"required"`
//		Timeout time.Duration     `json:"timeout" definition:"default=30s,min=1s,max=10m"`
//	}
//	if !s.Read(&written) {
//		return nil, false
//	}
//
// and notes what else is wrong by the pointers of the fields.
type Settings struct {
	*definition.Reading
	Env
}

// NewSettings makes settings of a document, whose name and type are read by who
// loads it.
func NewSettings(doc definition.Document, env Env) *Settings {
	doc.Getenv = env.Getenv
	s := &Settings{Reading: doc.Open(), Env: env}
	s.Know("name", "type")
	return s
}

// Env is what the process gives to its connections.
type Env struct {
	// Getenv is the environment that secrets come from.
	Getenv func(string) string
	// HTTP is the one client for calls to the outside; it also dials for
	// whoever speaks something else.
	HTTP *outbound.Client
	// CheckOnly is a definition that is only looked at: nothing is made,
	// opened or called.
	CheckOnly bool
	// Log is for what happens between calls. Nil means that nobody looks.
	Log *slog.Logger
	// Publish adds an event to a topic of a workflow and returns what scripts
	// get for it. Doing it again with the same message id changes nothing.
	// Nil where there is no store.
	Publish func(ctx context.Context, workflow, topic, messageID string, payload json.RawMessage, key string) (json.RawMessage, error)
	// Rows reads rows of a source. Nil where there is no store.
	Rows ReadRows
	// Graph runs a graph, once for each key. Nil where there is no execution
	// service.
	Graph RunGraph
	// Quota is the book of calls that the connections share with everybody
	// who calls the same domains. Nil means that there are no limits.
	Quota Quota
}

// ReadRows reads up to limit rows of a source, the newest first, and the cursor
// with which to go on, empty at the end.
type ReadRows func(ctx context.Context, source, cursor string, limit int) (rows []map[string]any, next string, err error)

// RunGraph runs a graph and waits for its end. With OnlyLook nothing is begun:
// a key that is not known is pawl.ErrNotFound.
type RunGraph func(ctx context.Context, c GraphCall) (json.RawMessage, error)

// GraphCall asks for a run of a graph.
type GraphCall struct {
	GraphID, GrantID, Key string
	Input                 json.RawMessage
	OnlyLook              bool
}

// Quota books calls to domains of the outside.
type Quota interface {
	// Acquire books one call before it is made. An error that has a method
	// DeniedUntil() time.Time says when to ask again.
	Acquire(ctx context.Context, domain string) error

	// Learn notes what an answer tells about the limits of its domain.
	Learn(ctx context.Context, domain string, status int, h http.Header) error
}
