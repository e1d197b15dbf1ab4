package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Pins tells how the tools of the server compare to their pins.
func (c *Connection) Pins(ctx context.Context) ([]connector.Pin, error) {
	tools, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	var pins []connector.Pin
	for _, name := range c.allNames(tools) {
		p := connector.Pin{Method: name, Fixed: c.book.isFixed(name)}
		d, there := tools[name]
		if there {
			p.Now = d.hash()
			p.State, p.Pinned, p.Change = c.book.compare(d)
		} else {
			d, _ = c.book.known(name)
			p.State, p.Pinned, p.Change = connector.PinGone, c.book.hash(name), "the server no longer has it"
		}
		p.Mutation = c.cfg.mutation(d)
		pins = append(pins, p)
	}
	return pins, nil
}

// Pin agrees to a tool as the server describes it, or, if the name is empty, to
// all whose pins are not in the definition. It fails with pawl.ErrInvalid for a
// tool whose pin is there, and with pawl.ErrNotFound for one that nobody knows.
func (c *Connection) Pin(ctx context.Context, tool string) error {
	tools, err := c.look(ctx)
	if err != nil {
		return err
	}
	names := c.allNames(tools)
	if tool != "" {
		if !slices.Contains(names, tool) {
			return &pawl.Error{
				Code: pawl.CodeNotFound, Op: "pin a tool", Msg: "the server has no tool " + connector.Quote(tool),
				Hint: connector.Suggest(tool, names, "The tools are "+someNames(names)+"."),
			}
		}
		names = []string{tool}
	}
	for _, name := range names {
		d, there := tools[name]
		if c.book.isFixed(name) {
			if tool == "" || there && c.book.hash(name) == d.hash() {
				continue
			}
			return c.fixedFault(name, d, there)
		}
		if err := c.book.set(name, d, !there); err != nil {
			return &pawl.Error{Code: pawl.CodeUnavailable, Op: "pin a tool", Msg: "the pins cannot be kept", Err: err}
		}
		c.log.Info("a tool of the MCP server is pinned as it is", "tool", name, "gone", !there)
	}
	return nil
}

func (c *Connection) fixedFault(name string, d definition, there bool) error {
	hint := "Write there: pin: " + d.hash()
	if !there {
		hint = "The server no longer has the tool; remove it there."
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "pin a tool", Hint: hint,
		Msg: fmt.Sprintf("the pin of %s is in the definition of the connection %s", connector.Quote(name), c.cfg.name),
	}
}

// Test asks the server for its tools.
func (c *Connection) Test(ctx context.Context) (string, error) {
	tools, err := c.look(ctx)
	if err != nil {
		return "", err
	}
	blocked := 0
	for _, d := range tools {
		if state, _, _ := c.book.compare(d); state != connector.PinHolds {
			blocked++
		}
	}
	if blocked > 0 {
		return fmt.Sprintf("The server has %d tools; %d of them are blocked until they are pinned.", len(tools), blocked), nil
	}
	return fmt.Sprintf("The server has %d tools.", len(tools)), nil
}

// look asks the server for its tools as they are now. Its errors are
// *connector.Error.
func (c *Connection) look(ctx context.Context) (map[string]definition, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	s, fault := c.acquire(ctx)
	if fault != nil {
		return nil, fault
	}
	if err := c.list(ctx, s); err != nil {
		return nil, c.listFault(ctx, err)
	}
	if err := c.book.load(); err != nil { // another process may have pinned
		return nil, &connector.Error{Class: pawl.ClassPrecondition, Code: "no_pins", Msg: "the pins cannot be read", NotApplied: true, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.tools), nil
}

// allNames are those of the tools that the server has and of those that are
// pinned, sorted.
func (c *Connection) allNames(tools map[string]definition) []string {
	names := slices.Concat(slices.Collect(maps.Keys(tools)), c.book.names(), slices.Collect(maps.Keys(c.book.fixed)))
	slices.Sort(names)
	return slices.Compact(names)
}
