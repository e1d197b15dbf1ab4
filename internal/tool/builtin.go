package tool

import (
	"github.com/pawlrun/pawl/internal/tool/connector"
	"github.com/pawlrun/pawl/internal/tool/file"
	graphtool "github.com/pawlrun/pawl/internal/tool/graph"
	httptool "github.com/pawlrun/pawl/internal/tool/http"
	"github.com/pawlrun/pawl/internal/tool/mcp"
	"github.com/pawlrun/pawl/internal/tool/smtp"
	sourcetool "github.com/pawlrun/pawl/internal/tool/source"
	sqltool "github.com/pawlrun/pawl/internal/tool/sql"
	workflowtool "github.com/pawlrun/pawl/internal/tool/workflow"
)

// constructor makes a connection out of its definition. If it is not ok, it
// has noted why in the settings.
type constructor func(*connector.Settings) (c Connection, ok bool)

// builtin are the connectors by the type that definitions name.
func builtin() map[string]constructor {
	return map[string]constructor{
		"file":     file.New,
		"graph":    graphtool.New,
		"http":     httptool.New,
		"mcp":      mcp.New,
		"smtp":     smtp.New,
		"source":   sourcetool.New,
		"sql":      sqltool.New,
		"workflow": workflowtool.New,
	}
}
