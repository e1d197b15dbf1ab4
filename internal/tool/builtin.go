package tool

import (
	"github.com/pawlrun/pawl/internal/tool/connector"
	"github.com/pawlrun/pawl/internal/tool/file"
	"github.com/pawlrun/pawl/internal/tool/graphrun"
	"github.com/pawlrun/pawl/internal/tool/httpcall"
	"github.com/pawlrun/pawl/internal/tool/mail"
	"github.com/pawlrun/pawl/internal/tool/mcp"
	"github.com/pawlrun/pawl/internal/tool/publish"
	"github.com/pawlrun/pawl/internal/tool/rows"
	"github.com/pawlrun/pawl/internal/tool/sqldb"
)

// constructor makes a connection out of its definition. If it is not ok, it
// has noted why in the settings.
type constructor func(*connector.Settings) (c Connection, ok bool)

// builtin are the connectors by the type that definitions name.
func builtin() map[string]constructor {
	return map[string]constructor{
		"file":     file.New,
		"graph":    graphrun.New,
		"http":     httpcall.New,
		"mcp":      mcp.New,
		"smtp":     mail.New,
		"source":   rows.New,
		"sql":      sqldb.New,
		"workflow": publish.New,
	}
}
