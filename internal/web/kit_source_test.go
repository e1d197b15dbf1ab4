package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
)

// makeSources makes the kind whose lanes fetch, and a server to fetch from:
// one of its three rows does not fit, and /busy never answers well.
func (r *rig) makeSources(runs *ledger.Ledger) (*source.Service, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/prices", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"items":[{"id":1,"name":"<b>one</b>"},{"id":"x","name":"<i>no number</i>"},{"id":3,"name":"three"}]}`)
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	outside := httptest.NewServer(mux)
	r.t.Cleanup(outside.Close)
	r.outside = outside.URL
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(client.Close)
	book := quota.NewBook(r.db, nil, client, nil)
	return source.New(source.Options{
		DB: r.db, Ledger: runs, Fetcher: fetch.New(fetch.Options{Client: client, Book: book}), Book: book, Spool: r.t.TempDir(), Host: r.host(),
	})
}

// studio runs graphs: poet costs something, asks asks a person, fails fails.
type studio struct{}

func (s studio) Lookup(graphID string) (executor.Executor, string, error) {
	_, name, err := contract.ParseGraphID(graphID)
	return s, name, err
}

func (studio) Run(_ context.Context, run executor.Run, emit func(executor.Event) error) (executor.Result, error) {
	switch {
	case run.Name == "asks" && run.Resume == nil:
		return executor.Result{Interrupt: json.RawMessage(`{"question":"May <b>I</b>?"}`)}, nil
	case run.Name == "fails":
		return executor.Result{Code: string(contract.InvalidRequest), Message: "no <i>such</i> poem"}, nil
	}
	return executor.Result{OK: true, Output: json.RawMessage(`{"poem":"<b>leaf</b>"}`)}, nil
}

func (studio) Cancel(context.Context, executor.Run) error { return nil }

// makeGraphs makes the kind whose lanes run graphs.
func (r *rig) makeGraphs(runs *ledger.Ledger) (*schedule.Service, error) {
	service, err := execution.New(execution.Config{DB: r.db, Graphs: studio{}, Node: "node-1"})
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := service.Close(ctx); err != nil {
			r.t.Errorf("close executions: %v", err)
		}
	})
	return schedule.New(schedule.Options{DB: r.db, Ledger: runs, Executions: service, Grants: grant.Service{}, Host: r.host()})
}

// fetching applies a source.
func (r *rig) fetching(name, path string) {
	r.t.Helper()
	r.ask("PUT", "/api/v1/sources/"+name, map[string]any{
		"url": r.outside + path, "table": name, "schedule": "hourly",
		"response": map[string]any{"dataPath": "items", "fields": []any{
			map[string]any{"source": "id", "target": "id", "type": "integer"}, map[string]any{"source": "name", "target": "name"},
		}},
		"write": map[string]any{"key": []any{"id"}},
	}, nil)
}

// waitLane waits until a source or schedule has this word.
func (r *rig) waitLane(kind, name, word string) (why client.LaneWhy) {
	r.t.Helper()
	r.eventually(name+" is "+word, func() bool {
		why = client.LaneWhy{}
		r.ask("GET", "/api/v1/lanes/"+kind+"/"+name+"/why", nil, &why)
		return why.Status == word && len(why.Recent) > 0
	})
	return why
}

// schedule makes a schedule of the admin and runs it once.
func (r *rig) schedule(name, graphName, cron string) (id string) {
	r.t.Helper()
	var made client.Schedule
	r.ask("POST", "/api/v1/schedules", map[string]any{"name": name, "graphId": "x:" + graphName, "input": map[string]any{"topic": "<b>"}, "cron": cron, "timezone": "Europe/Berlin"}, &made)
	r.ask("POST", "/api/v1/schedules/"+made.ID+"/run", nil, nil)
	return made.ID
}
