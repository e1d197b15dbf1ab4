package sqltool

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// loadTime is how long a database is waited for while definitions are loaded.
const loadTime = 5 * time.Second

// New makes the connection that a definition describes:
//
//	url: postgres://reporter:${DB_PASSWORD}@db.example.com/crm   # or sqlite:./crm.db
//	timeout: 30s
//	maxRows: 1000
//	readOnly: false   # true: there is no exec
//	track: true       # false: exec is not recorded in pawl_calls, and cannot be reconciled
//
// A database that cannot be reached yet is no fault; one that does not let
// calls be recorded is.
func New(s *connector.Settings) (connector.Connection, bool) {
	var written struct {
		URL      definition.Secret `json:"url" definition:"required"`
		Timeout  time.Duration     `json:"timeout" definition:"default=30s,min=1s,max=10m"`
		MaxRows  int               `json:"maxRows" definition:"default=1000,min=1,max=100000"`
		ReadOnly bool              `json:"readOnly"`
		Track    bool              `json:"track" definition:"default=true"`
	}
	s.Read(&written)
	d := &Database{
		timeout: written.Timeout, limit: limit{rows: written.MaxRows, bytes: largestResult},
		readOnly: written.ReadOnly, track: written.Track,
	}
	if written.URL.Value != "" {
		d.connectTo(s, written.URL)
	}
	d.secrets = redact.New(append(s.Secrets(), redact.Secret{Name: "password", Value: d.password}))
	if s.OK() && d.track && !d.readOnly && !s.CheckOnly {
		d.refuseUntracked(s, written.URL)
	}
	return d, s.OK()
}

// connectTo chooses the engine by the beginning of the url.
func (d *Database) connectTo(s *connector.Settings, url definition.Secret) {
	var fault string
	switch {
	case strings.HasPrefix(url.Value, "sqlite:"):
		d.engine, fault = newSQLite(s, strings.TrimPrefix(url.Value, "sqlite:"))
		d.service, d.place = s.Name, "the file "+strings.TrimPrefix(url.Written, "sqlite:")
	case strings.HasPrefix(url.Value, "postgres://"), strings.HasPrefix(url.Value, "postgresql://"):
		var p *postgres
		p, fault = newPostgres(s, url.Value)
		if fault == "" {
			d.password = p.config.Password
			d.engine, d.service, d.place = p, strings.TrimSpace(s.Name+" ("+p.server+")"), "the database "+p.server
		}
	default:
		fault = "it must begin with postgres:// or sqlite:"
	}
	if fault != "" {
		s.Add(url.Pointer, "url %s cannot be used: %s", pawl.Quote(url.Written), fault)
	}
}

// refuseUntracked refuses a database that is there and does not let calls be
// recorded: better now than after a call whose answer was lost.
func (d *Database) refuseUntracked(s *connector.Settings, url definition.Secret) {
	ctx, cancel := context.WithTimeout(context.Background(), min(loadTime, d.timeout))
	defer cancel()
	e, failed := errors.AsType[*connector.Error](d.ensureBooks(ctx))
	if failed && (e.Class == pawl.ClassPermission || e.Class == pawl.ClassPrecondition) && e.Code != "blocked" {
		s.Add(url.Pointer, "%s", d.secrets.Text(e.Msg+". "+e.Hint))
	}
}
