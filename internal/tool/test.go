package tool

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Test tries a connection out, without an effect outside, and tells in one
// sentence what it saw. It fails with pawl.ErrNotFound if there is no such
// connection, and else with the *Error that calls would meet. A connection
// that cannot be tried says so.
func (s *Set) Test(ctx context.Context, name string) (saw string, err error) {
	found, ok := s.members[name]
	if !ok {
		return "", &pawl.Error{
			Code: pawl.CodeNotFound, Op: "test connection",
			Msg: "there is no connection " + pawl.Quote(name), Hint: s.connectionHint(name),
		}
	}
	tester, ok := found.Connection.(connector.Tester)
	if !ok {
		return fmt.Sprintf("A connection of the type %s cannot be tried without an effect; its definition is in order.", found.Type), nil
	}
	return tester.Test(ctx)
}
