package server

import (
	"context"
	"os"
	"path/filepath"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
	sqltool "github.com/pawlrun/pawl/internal/tool/sql"
	"github.com/pawlrun/pawl/internal/workflow"
)

// buildQuota makes the book of calls, which sources and tools share.
func (s *server) buildQuota() error {
	providers, err := quota.Load(s.cfg.Providers, s.cfg.ProviderDirs, os.Getenv)
	if err != nil {
		return err
	}
	s.book = quota.NewBook(s.db, providers, s.client, s.log)
	return nil
}

// buildSources makes the kind whose lanes fetch.
func (s *server) buildSources() (err error) {
	spool := filepath.Join(s.cfg.Data, "spool")
	if err := os.RemoveAll(spool); err != nil { // what a crash left
		return err
	}
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return err
	}
	s.fetcher = fetch.New(fetch.Options{Client: s.client, Book: s.book, Log: s.log})
	s.sources, err = source.New(source.Options{
		DB: s.db, Ledger: s.ledger, Fetcher: s.fetcher, Book: s.book, Log: s.log, Workers: s.cfg.Workers, Spool: spool,
		Publish: s.publishRows, Database: s.databaseOf, Host: s.host(), Calendars: &s.calendars, Needs: &s.needs,
	})
	return err
}

// publishRows turns rows of a source into events of a workflow, in the
// transaction of their page.
func (s *server) publishRows(ctx context.Context, tx *store.Tx, from, name, topic string, rows []source.Row) error {
	events := make([]workflow.ExternalEvent, len(rows))
	for i, r := range rows {
		events[i] = workflow.ExternalEvent{
			Topic: topic, MessageID: r.MessageID, Payload: r.Payload,
			Input: &workflow.OutsideInput{Source: "source", Type: from, ID: r.Key, Title: "Row " + r.Key + " of " + from},
		}
	}
	return s.workflows.PublishMany(ctx, tx, name, events, "source "+from)
}

// readRows is what connections of the type source do.
func (s *server) readRows(ctx context.Context, name, cursor string, limit int) ([]map[string]any, string, error) {
	return s.sources.Rows(ctx, name, cursor, limit)
}

// otherDatabase is a connection of the type sql that a source writes to.
type otherDatabase struct{ *sqltool.Database }

// Write implements source.Database.
func (o otherDatabase) Write(ctx context.Context, fn func(ctx context.Context, db table.DB) error) error {
	return o.Database.Write(ctx, func(ctx context.Context, s sqltool.Statements) error { return fn(ctx, s) })
}

// databaseOf finds the database that a definition names in write.connection.
func (s *server) databaseOf(name string) (source.Database, error) {
	c, ok := s.tools.Find(name)
	db, isDatabase := c.(*sqltool.Database)
	switch {
	case !ok:
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Reason: "no_connection", Op: "write rows", Msg: "there is no connection " + name, Hint: "pawl get connections lists them."}
	case !isDatabase:
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Reason: "no_database", Op: "write rows", Msg: "the connection " + name + " is not a database", Hint: "Use one of the type sql."}
	}
	if t, err := s.tools.Lookup(name, "exec"); err != nil || t.Policy == tool.Deny {
		return nil, &pawl.Error{
			Code: pawl.CodeForbidden, Reason: source.ReasonDenied, Op: "write rows", Msg: "the policy of the connection " + name + " denies exec, and so any writing",
			Hint: "Whoever runs the server can allow it in the file of the connection.",
		}
	}
	return otherDatabase{db}, nil
}
