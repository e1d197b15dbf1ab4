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
	tools, err := c.listTools(ctx)
	if err != nil {
		return nil, err
	}
	return c.compare(tools), nil
}

// Blocked are the pins that do not hold, as the server last described its
// tools; none if it never did.
func (c *Connection) Blocked() []connector.Pin {
	c.mu.Lock()
	tools := maps.Clone(c.tools)
	c.mu.Unlock()
	if tools == nil {
		return nil
	}
	return slices.DeleteFunc(c.compare(tools), func(p connector.Pin) bool { return p.State == connector.PinHolds })
}

func (c *Connection) compare(tools map[string]definition) (pins []connector.Pin) {
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
		if p.State != connector.PinHolds {
			if old, known := c.book.known(name); known && old.hash() == p.Pinned {
				p.Was = old.lines()
			}
			if there {
				p.Is = d.lines()
			}
		}
		pins = append(pins, p)
	}
	return pins
}

// Pin agrees to tools as the server describes them now. See connector.Pinner.
func (c *Connection) Pin(ctx context.Context, names []string, seen map[string]string) error {
	tools, err := c.listTools(ctx)
	if err != nil {
		return err
	}
	known := c.allNames(tools)
	for _, name := range names {
		if err := c.refusePin(name, known, tools, seen); err != nil {
			return err
		}
	}
	for _, name := range names {
		if c.book.isFixed(name) { // and holds
			continue
		}
		d, there := tools[name]
		if err := c.book.set(name, d, !there); err != nil {
			return &pawl.Error{Code: pawl.CodeUnavailable, Op: "pin a tool", Msg: "the pins cannot be kept", Err: err}
		}
		c.log.Info("a tool of the MCP server is pinned as it is", "tool", name, "gone", !there)
	}
	return nil
}

// refusePin is why a tool cannot be pinned, or nil.
func (c *Connection) refusePin(name string, known []string, tools map[string]definition, seen map[string]string) error {
	d, there := tools[name]
	now := ""
	if there {
		now = d.hash()
	}
	was, looked := seen[name]
	switch {
	case !slices.Contains(known, name):
		return &pawl.Error{
			Code: pawl.CodeNotFound, Op: "pin a tool", Msg: "the server has no tool " + pawl.Quote(name),
			Hint: pawl.Suggest(name, known, "The tools are "+someNames(known)+"."),
		}
	case c.book.isFixed(name) && c.book.hash(name) != now:
		return c.fixedFault(name, now)
	case looked && was != now:
		return &pawl.Error{
			Code: pawl.CodeConflict, Reason: "changed", Op: "pin a tool", Msg: "the tool " + pawl.Quote(name) + " is not the one you saw",
			Hint: "Look at it again: pawl connections pin " + c.cfg.name,
		}
	}
	return nil
}

// fixedFault is the refusal to pin a tool whose pin is in the definition; now
// is its hash, empty if the server does not have it.
func (c *Connection) fixedFault(name, now string) error {
	hint := "Write pin: " + now + " there."
	if now == "" {
		hint = "The server no longer has the tool; remove it there."
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: "fixed", Op: "pin a tool", Hint: hint,
		Msg: fmt.Sprintf("the pin of %s is in the definition of the connection %s", pawl.Quote(name), c.cfg.name),
	}
}

// Test asks the server for its tools.
func (c *Connection) Test(ctx context.Context) (string, error) {
	tools, err := c.listTools(ctx)
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

// listTools asks the server for its tools as they are now. Its errors are
// *connector.Error.
func (c *Connection) listTools(ctx context.Context) (map[string]definition, error) {
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
