package access

import (
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Definition is what a definition does beyond its own kind when it runs. Empty
// fields do nothing.
type Definition struct {
	Graph      string // the graph that it runs, as provider:name
	Publishes  string // the workflow that gets events of it
	Connection string // the connection that it writes with
	Job        string // the task of the job that it enqueues
	Runs       string // the schedule that it runs

	Fetches []string // the sources that it asks to fetch
}

// workflowProvider is the provider of graphs that are workflows of this server.
const workflowProvider = "workflow"

// needs are the scopes of doing by hand what the definition does, each with what
// that is in words.
func (d Definition) needs() (list []struct{ scope, why string }) {
	add := func(scope, why string) { list = append(list, struct{ scope, why string }{scope, why}) }
	if provider, name, _ := strings.Cut(d.Graph, ":"); provider == workflowProvider {
		add("workflows:write", "runs the workflow "+name)
	}
	if d.Publishes != "" {
		add("workflows:write", "publishes events to the workflow "+d.Publishes)
	}
	if d.Connection != "" {
		add("connections:write", "writes with the connection "+d.Connection)
	}
	if d.Job != "" {
		add("jobs:write", "enqueues a job of the task "+d.Job)
	}
	if d.Runs != "" {
		add("schedules:write", "runs the schedule "+d.Runs)
	}
	for _, source := range d.Fetches {
		add("sources:write", "makes the source "+source+" fetch")
	}
	return list
}

// Define fails with an error of code forbidden unless a token may do all that
// the definition will do.
func Define(t *userstore.Token, d Definition) error {
	for _, need := range d.needs() {
		err := Require(t, need.scope)
		if e, ok := err.(*pawl.Error); ok { //nolint:errorlint // Require gives nothing else
			e.Msg = "the definition " + need.why + ": " + e.Msg
			return e
		}
	}
	return nil
}
