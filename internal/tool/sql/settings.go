package sqltool

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Defaults and limits of settings.
const (
	defaultTimeout = 30 * time.Second
	longestTimeout = 10 * time.Minute
	defaultRows    = 1000
	mostRows       = 100_000

	// loadTime is how long a database is waited for while definitions are
	// loaded.
	loadTime = 5 * time.Second
)

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
	before := len(s.Faults())
	d := &Database{
		timeout:  s.Duration("timeout", defaultTimeout, time.Second, longestTimeout),
		limit:    limit{rows: s.Number("maxRows", defaultRows, 1, mostRows), bytes: largestResult},
		readOnly: s.Flag("readOnly", false),
		track:    s.Flag("track", true),
	}
	url, ok := s.OneOf("url")
	if ok {
		d.connectTo(s, url)
	}
	d.secrets = connector.NewRedactor(append(s.Secrets(), connector.Secret{Name: "password", Value: d.password}))
	if len(s.Faults()) > before {
		return d, false
	}
	if d.track && !d.readOnly && !s.Env().CheckOnly {
		d.refuseUntracked(s, url)
	}
	return d, len(s.Faults()) == before
}

// connectTo chooses the engine by the beginning of the url.
func (d *Database) connectTo(s *connector.Settings, url connector.Field) {
	var fault string
	switch {
	case strings.HasPrefix(url.Value, "sqlite:"):
		d.engine, fault = newSQLite(s, strings.TrimPrefix(url.Value, "sqlite:"))
		d.service, d.place = s.Name(), "the file "+strings.TrimPrefix(url.Written, "sqlite:")
	case strings.HasPrefix(url.Value, "postgres://"), strings.HasPrefix(url.Value, "postgresql://"):
		var p *postgres
		p, fault = newPostgres(s, url.Value)
		if fault == "" {
			d.password = p.config.Password
			d.engine, d.service, d.place = p, strings.TrimSpace(s.Name()+" ("+p.server+")"), "the database "+p.server
		}
	default:
		fault = "it must begin with postgres:// or sqlite:"
	}
	if fault != "" {
		s.Refuse(url, "url %s cannot be used: %s", connector.Quote(url.Written), fault)
	}
}

// refuseUntracked refuses a database that is there and does not let calls be
// recorded: better now than after a call whose answer was lost.
func (d *Database) refuseUntracked(s *connector.Settings, url connector.Field) {
	ctx, cancel := context.WithTimeout(context.Background(), min(loadTime, d.timeout))
	defer cancel()
	e, failed := errors.AsType[*connector.Error](d.ensureBooks(ctx))
	if failed && (e.Class == pawl.ClassPermission || e.Class == pawl.ClassPrecondition) && e.Code != "blocked" {
		s.Refuse(url, "%s", d.secrets.Text(e.Msg+". "+e.Hint))
	}
}
