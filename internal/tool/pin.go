package tool

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Pin is a method with what is known about its pin.
type Pin = connector.Pin

// PinHolds is the state of a method that is as it was agreed to.
const PinHolds = connector.PinHolds

// Pins asks how the methods of a connection compare to their pins, sorted by
// name. It fails with pawl.ErrNotFound if there is no such connection, with
// pawl.ErrConflict if it has nothing to pin, and else with the *Error that
// calls would meet.
func (s *Set) Pins(ctx context.Context, name string) ([]Pin, error) {
	pinner, err := s.pinner(name)
	if err != nil {
		return nil, err
	}
	return pinner.Pins(ctx)
}

// Pin agrees to methods of a connection as they are, or as they were seen; see
// connector.Pinner. It fails as Pins does beside.
func (s *Set) Pin(ctx context.Context, name string, methods []string, seen map[string]string) error {
	pinner, err := s.pinner(name)
	if err != nil {
		return err
	}
	return pinner.Pin(ctx, methods, seen)
}

// Blocked are the pins of a connection that do not hold, as far as is known
// without asking anybody.
func (s *Set) Blocked(name string) []Pin {
	if pinner, ok := s.members[name].Connection.(connector.Pinner); ok {
		return pinner.Blocked()
	}
	return nil
}

func (s *Set) pinner(name string) (connector.Pinner, error) {
	found, ok := s.members[name]
	if !ok {
		return nil, &pawl.Error{
			Code: pawl.CodeNotFound, Op: "find connection",
			Msg: "there is no connection " + pawl.Quote(name), Hint: s.connectionHint(name),
		}
	}
	pinner, ok := found.Connection.(connector.Pinner)
	if !ok {
		return nil, &pawl.Error{
			Code: pawl.CodeConflict, Reason: "nothing_to_pin", Op: "find pins",
			Msg:  fmt.Sprintf("the connection %s has nothing to pin", name),
			Hint: fmt.Sprintf("What a connection of the type %s can do is part of Pawl; only what an MCP server describes is pinned.", found.Type),
		}
	}
	return pinner, nil
}
