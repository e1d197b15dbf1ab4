package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

func connectionKind() kind {
	return kind{
		plural: "connections", singular: "connection", aliases: []string{"conn"}, path: client.ConnectionsPath,
		columns: []column{
			{title: "name", flex: true, least: 12}, {title: "type"}, {title: "may", flex: true, least: 16}, {title: "asks for", flex: true, least: 16}, {title: "must not", flex: true, spare: true}, {title: "blocked", flex: true, spare: true},
			{title: "file", wide: true, flex: true},
		},
		row: connectionRow, describe: describeConnection,
	}
}

func connectionRow(raw json.RawMessage, _ time.Time) ([]string, error) {
	var c client.Connection
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	by := map[string][]string{}
	for _, m := range c.Methods {
		by[m.Policy] = append(by[m.Policy], m.Name)
	}
	names := func(policy string) string { return orDash(strings.Join(by[policy], ",")) }
	var blocked []string
	for _, b := range c.Blocked {
		blocked = append(blocked, b.Name)
	}
	return []string{c.Name, c.Type, names("allow"), names("ask"), names("deny"), orDash(strings.Join(blocked, ",")), orDash(string(c.File))}, nil
}

// describeConnection tells what scripts can do with a connection.
func describeConnection(raw json.RawMessage, now time.Time) (string, error) {
	var c client.Connection
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", fmt.Errorf("read connection: %w", err)
	}
	d := newDescription(now)
	d.say("The connection %s is of the type %s. Scripts call it as ctx.tools.%s.", c.Name, c.Type, c.Name)
	d.say("Try it out with: pawl connections test %s", c.Name)
	d.gap()
	d.line("File", string(c.File))
	if len(c.Methods) == 0 {
		d.say("It has no methods, or does not know them yet.")
	}
	describeBlocked(d, c)
	var rows [][]string
	for _, m := range c.Methods {
		class, unknown := "reads", "-"
		if m.Class == "mutation" {
			class, unknown = "has side effects", "a person is asked what happened"
			if m.Reconciles {
				unknown = "the other side is asked what happened"
			}
		}
		rows = append(rows, []string{m.Name, class, policyWords(m.Policy), unknown})
	}
	d.table("Methods", []column{{title: "method"}, {title: "class"}, {title: "policy"}, {title: "if no answer comes"}}, rows)
	return d.String(), nil
}

// describeBlocked tells which methods are refused whatever their policy, and
// what to do about it.
func describeBlocked(d *description, c client.Connection) {
	var rows [][]string
	for _, b := range c.Blocked {
		rows = append(rows, []string{b.Name, visible.Text(b.Why)})
	}
	if len(rows) == 0 {
		return
	}
	d.table("Blocked until you accept them as they are now", []column{{title: "method"}, {title: "why"}}, rows)
	d.say("  Look at them with: pawl connections pin %s", c.Name)
}

// policyWords say what happens when a script calls a method.
func policyWords(policy string) string {
	switch policy {
	case "allow":
		return "allow: the call is made"
	case "ask":
		return "ask: a person approves each call"
	case "deny":
		return "deny: the call is refused"
	}
	return policy
}
