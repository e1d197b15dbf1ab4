package tool

import (
	"encoding/json"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Address is where a call of the target with these arguments goes, for people,
// with the secrets of all connections replaced by their names. It is empty for
// a connection that cannot tell, and for a call that would be refused.
func (s *Set) Address(t Target, args json.RawMessage) string {
	known, ok := t.Connection.(connector.Addresser)
	if !ok {
		return ""
	}
	return s.RedactText(known.Address(Call{Method: t.Method.Name, Args: args}))
}
