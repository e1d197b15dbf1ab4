package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
)

// nodeKind are the processes on the database.
func nodeKind() kind {
	return kind{
		plural: "nodes", singular: "node", path: client.NodesPath, instead: "Nodes are in lists only: pawl get nodes",
		columns: []column{
			{title: "id"}, {title: "name", flex: true, least: 12}, {title: "version"}, {title: "schema"}, {title: "shares"}, {title: "started"}, {title: "seen"},
			{title: "roles", wide: true}, {title: "addr", wide: true},
		},
		row: nodeRow,
	}
}

func nodeRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var n client.Node
	if err := json.Unmarshal(raw, &n); err != nil {
		return nil, err
	}
	return []string{
		n.ID, n.Name, orDash(n.Version), schemaWords(n.Schema), strconv.Itoa(n.Shares), relative(n.StartedAt.Time, now), relative(n.SeenAt.Time, now),
		strings.Join(n.Roles, ","), n.Addr,
	}, nil
}

// schemaWords tell a range of schemas.
func schemaWords(s client.SchemaRange) string {
	switch {
	case s.Max == 0:
		return "-"
	case s.Min == s.Max:
		return strconv.Itoa(s.Max)
	}
	return fmt.Sprintf("%d-%d", s.Min, s.Max)
}
