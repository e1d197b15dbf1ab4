package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// freshen lists the tools again if the list is old or known to be wrong, so
// that a tool is compared to its pin as it is and not as it was.
func (c *Connection) freshen(ctx context.Context, s *session) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	fresh := time.Since(s.listed) < listAge && len(s.stale) == 0
	<-s.turn
	if fresh {
		return nil
	}
	return c.list(ctx, s)
}

// list asks the server for its tools and learns what it says.
func (c *Connection) list(ctx context.Context, s *session) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.stale: // from here on, news are new
	default:
	}
	tools := map[string]definition{}
	if offers := s.client.InitializeResult().Capabilities; offers == nil || offers.Tools != nil {
		for tool, err := range s.client.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if len(tools) == mostTools {
				return fmt.Errorf("the server has more than %d tools", mostTools)
			}
			c.add(tools, tool)
		}
	}
	s.listed = time.Now()
	c.learn(tools)
	return nil
}

func (c *Connection) add(tools map[string]definition, tool *sdk.Tool) {
	d, err := define(tool)
	_, twice := tools[tool.Name]
	switch {
	case err != nil:
		c.log.Warn("a tool of the MCP server is left out", "tool", pawl.Quote(tool.Name), "why", err)
	case twice:
		c.log.Warn("a tool of the MCP server is left out", "tool", pawl.Quote(tool.Name), "why", "there is another one of the same name")
	default:
		tools[tool.Name] = d
	}
}

// learn takes over what the server says about its tools. The first time, all
// of them are pinned.
func (c *Connection) learn(tools map[string]definition) {
	c.mu.Lock()
	before := c.tools
	c.tools = tools
	c.mu.Unlock()
	pinned, err := c.book.trustFirst(tools)
	if err != nil {
		c.log.Error("the pins of the MCP server cannot be kept", "error", err)
	}
	if err := c.book.remember(tools); err != nil {
		c.log.Debug("what is known about pinned tools cannot be kept for later", "error", err)
	}
	if pinned {
		c.log.Info("the tools of the MCP server are pinned as they are, for it has no pins yet", "tools", len(tools), "file", c.book.path)
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if old, known := before[name]; !known || old.hash() != tools[name].hash() {
			c.warnAbout(tools[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.cfg.tools)) {
		if _, there := tools[name]; !there && before == nil {
			c.log.Warn("the definition names a tool that the MCP server does not have", "tool", name)
		}
	}
}

// warnAbout tells what an operator should know about a tool that is new or has
// changed.
func (c *Connection) warnAbout(d definition) {
	if c.cfg.tools[d.Name].Class == classRead && !d.Annotations.ReadOnly {
		c.log.Warn("a tool stays a mutation, because the MCP server does not declare it read-only", "tool", d.Name)
	}
	if state, _, change := c.book.compare(d); state != connector.PinHolds {
		c.log.Warn("a tool of the MCP server is blocked until it is pinned", "tool", d.Name, "state", state, "change", change)
	}
}

// admit returns the tool that a call names if it may be called: if it is as it
// was pinned.
func (c *Connection) admit(name string) (definition, *connector.Error) {
	d, there := c.tool(name)
	if !there {
		return d, c.absent(name)
	}
	state, _, change := c.book.compare(d)
	if state != connector.PinHolds {
		// Another process may have pinned it.
		if err := c.book.load(); err != nil {
			c.log.Error("the pins of the MCP server cannot be read", "error", err)
		}
		state, _, change = c.book.compare(d)
	}
	switch state {
	case connector.PinHolds:
		return d, nil
	case connector.PinChanged:
		return d, c.blocked(d, "tool_changed", "the tool "+pawl.Quote(name)+" is not what was pinned: "+change)
	default:
		msg := "the tool " + pawl.Quote(name) + " was never pinned"
		if err := c.book.writeFault(); err != nil {
			msg += ", because " + err.Error()
		}
		return d, c.blocked(d, "tool_not_pinned", msg)
	}
}

// blocked is the refusal of a tool.
func (c *Connection) blocked(d definition, code, msg string) *connector.Error {
	hint := "Look at it, and agree with: pawl connections pin " + c.cfg.name + " " + d.Name
	if c.book.isFixed(d.Name) {
		hint = "Look at it, and agree by writing pin: " + d.hash() + " into the definition."
	}
	return &connector.Error{Class: pawl.ClassPermission, Code: code, Msg: msg, Hint: hint, NotApplied: true}
}

// absent is the refusal of a tool that the server does not have.
func (c *Connection) absent(name string) *connector.Error {
	if _, pinned := c.book.known(name); pinned || c.book.isFixed(name) {
		hint := "If that is right, drop it with: pawl connections pin " + c.cfg.name + " " + name
		if c.book.isFixed(name) {
			hint = "If that is right, remove it from the definition of the connection."
		}
		return &connector.Error{
			Class: pawl.ClassPrecondition, Code: "tool_gone", NotApplied: true,
			Msg: "the server no longer has the tool " + pawl.Quote(name), Hint: hint,
		}
	}
	return &connector.Error{
		Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
		Msg: "the server has no tool " + pawl.Quote(name),
	}
}
