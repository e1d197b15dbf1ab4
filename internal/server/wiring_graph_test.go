package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/workflow"
)

// a workflow that runs as a graph is asked once per attempt,
// whether the process dies before or after the asking is remembered.
func TestAWorkflowAsAGraphIsAskedOncePerAttempt(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		cfg := configOf(t, url)
		s := &server{cfg: cfg, log: newLogger(cfg.Logs, "text", "error")} // built and not run: nobody takes up what is asked for
		defer s.close()
		if err := s.build(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.workflows.Apply(t.Context(), workflow.Deploy{Script: hesitant, Filename: "hesitant.workflow.js", By: "me"}); err != nil {
			t.Fatal(err)
		}
		died := errors.New("the process died")
		asked := func() (n int) {
			entries, err := s.db.AuditLog(t.Context(), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Action == "workflow.run" && e.Actor == "graph r" {
					n++
				}
			}
			return n
		}
		var memory json.RawMessage
		for _, step := range []struct {
			name       string
			attempt    int
			remembered bool // what an attempt asked for, before the process died
			known      bool // and it was this attempt
			want       int
		}{
			{"the first time", 1, false, false, 1},
			{"it died before that was remembered", 1, false, false, 1},
			{"it died after that", 1, true, true, 1},
			{"another attempt", 2, true, false, 2},
			{"that one again", 2, true, true, 2},
		} {
			ctx, die := context.WithCancelCause(t.Context())
			defer die(nil)
			r := executor.Run{RunID: "r", Attempt: step.attempt}
			if step.remembered {
				r.Remote = memory
			}
			if step.known {
				die(died) // while it waits for the workflow
			}
			emit := func(e executor.Event) error {
				memory = e.Remote
				return died
			}
			if _, err := s.runWorkflow(ctx, "hesitant", r, emit); !errors.Is(err, died) {
				t.Fatalf("%s: %v", step.name, err)
			}
			if n := asked(); n != step.want {
				t.Errorf("%s: it was asked %d times, want %d", step.name, n, step.want)
			}
		}
	})
}

// what is run with the token of a person is in the audit log, under the
// name of that person and a key of that person's own.
func TestGraphsThatPeopleRunAreInTheAuditLog(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		r := launch(t, configOf(t, database))
		u := &up{t, r.url, strings.TrimPrefix(r.auth, "Bearer ")}
		status, raw := u.ask(u.admin, "POST", "/api/v1/grants", `{"scopes":["graph:execute:workflow:nowhere"]}`)
		var grant struct{ ID string }
		if err := json.Unmarshal([]byte(raw), &grant); status != http.StatusCreated || err != nil {
			t.Fatalf("%d %s", status, raw)
		}
		token, id := u.token("ada", "graphs:execute")
		body := `{"executionGrantId":"` + grant.ID + `","input":{}}`
		if status, raw := u.ask(token, "POST", "/api/internal/graphs/workflow:nowhere/runs", body, "Idempotency-Key", "k"); status != http.StatusOK {
			t.Fatalf("%d %s", status, raw)
		}
		if status, code := u.ask(u.admin, "GET", "/api/internal/executions/outcome", "", "Idempotency-Key", "k"); status != http.StatusNotFound {
			t.Errorf("another's key: %d %s", status, code)
		}
		r.stop()
		if n := r.count(`select count(*) from audit_log where action = 'graph.run' and actor = 'ada (token ` + id + `)'`); n != 1 {
			t.Errorf("%d lines in the audit log", n)
		}
	})
}
