package server

import (
	"context"
	"encoding/json"
	"os"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/workflow"
)

// buildWorkflows makes the kind whose lanes are scripts.
func (s *server) buildWorkflows() (err error) {
	s.tools, err = tool.Load(s.cfg.ConnectionDir, tool.Env{Getenv: os.Getenv, HTTP: s.client, Publish: s.publish, Rows: s.readRows, Graph: s.callGraph, Quota: s.book, Log: s.log})
	if err != nil {
		return err
	}
	if s.pool, err = script.NewPool(script.Config{Workers: s.cfg.Workers, Heap: s.cfg.ScriptMemory, Log: s.log}); err != nil {
		return err
	}
	// Replays have workers of their own, so that no real run waits for one.
	if s.trials, err = script.NewPool(script.Config{Workers: workflow.MaxReplays, Heap: s.cfg.ScriptMemory, Background: true, Log: s.log}); err != nil {
		return err
	}
	s.ledger = ledger.New(ledger.Config{
		Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}}, Observe: s.observeRun,
	})
	mechanic, err := s.buildRepair()
	if err != nil {
		return err
	}
	s.workflows, err = workflow.New(workflow.Options{
		DB: s.db, Ledger: s.ledger, Scripts: s.pool, Trials: s.trials, Tools: s.tools, Log: s.log, Host: s.host(), Repair: mechanic, Calendars: &s.calendars, Needs: &s.needs,
		Limits: script.Limits{Wall: s.cfg.ScriptTimeout, Heap: s.cfg.ScriptMemory},
	})
	return err
}

// publish is what connections of the type workflow do. Publishing the same
// event again changes nothing, so it can be repeated at will.
func (s *server) publish(ctx context.Context, name, topic, messageID string, payload json.RawMessage, key string) (json.RawMessage, error) {
	var published eventstore.Published
	err := eventstore.Write(ctx, s.db, name, topic, messageID, func(ctx context.Context, tx *store.Tx) (err error) {
		_, published, err = s.workflows.PublishExternal(ctx, tx, name, workflow.ExternalEvent{Topic: topic, MessageID: messageID, Payload: payload}, "call "+key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"topic": topic, "messageId": messageID, "duplicate": !published.News()})
}
