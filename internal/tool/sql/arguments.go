package sqltool

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// The methods.
const (
	methodQuery = "query"
	methodExec  = "exec"
)

// Limits of arguments.
const (
	largestArguments = 8 << 20 // bytes
	mostParams       = 10_000
)

type arguments struct {
	SQL    *string           `json:"sql"`
	Params []json.RawMessage `json:"params"`
}

// parse reads the arguments of a call, which a script that nobody trusts made.
func (d *Database) parse(method string, raw json.RawMessage) (statement, error) {
	var a arguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return statement{}, err
	}
	switch {
	case a.SQL == nil || strings.TrimSpace(*a.SQL) == "":
		return statement{}, connector.BadArguments("Give one statement of SQL, such as select name from customers where id = $1.", "sql is missing")
	case strings.ContainsRune(*a.SQL, 0):
		return statement{}, connector.BadArguments("", "sql has a zero character in it")
	case len(a.Params) > mostParams:
		return statement{}, connector.BadArguments("Pass a list as one parameter, in JSON.", "there are %d params, more than the %d allowed", len(a.Params), mostParams)
	}
	text, err := d.engine.check(method, *a.SQL, len(a.Params))
	return statement{sql: text, params: a.Params}, err
}
