package mcp

import (
	"net/url"
	"strings"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Address is the tool and whose it is: the URL of the server without its query,
// or the command that runs it.
func (c *Connection) Address(call connector.Call) string {
	if len(c.cfg.command) > 0 {
		return call.Method + " of the program " + strings.Join(c.cfg.command, " ")
	}
	u, err := url.Parse(c.cfg.url)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return call.Method + " of " + u.String()
}
