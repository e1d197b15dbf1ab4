package sqltool

import "github.com/pawlrun/pawl/internal/tool/connector"

// Address is the method and the database.
func (d *Database) Address(c connector.Call) string { return c.Method + " in " + d.place }
