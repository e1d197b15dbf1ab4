package api

import (
	"context"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

const nodeCursor = "node"

// listNodes shows the processes on the database, with the schemas that they
// serve: during an upgrade one can see who is left.
func (a *API) listNodes(ctx context.Context, in *PageInput) (*pageOutput[client.Node], error) {
	after, err := in.place(nodeCursor)
	if err != nil {
		return nil, err
	}
	view, err := a.db.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	shares := map[string]int{}
	for _, b := range view.Buckets {
		shares[b.Node]++
	}
	id := func(n store.Node) string { return n.ID }
	list := following(view.Nodes, after, in.Limit+1, id)
	return &pageOutput[client.Node]{cutPage(list, in.Limit, nodeCursor, id, func(n store.Node) client.Node { return nodeOf(n, shares[n.ID]) })}, nil
}

func nodeOf(n store.Node, shares int) client.Node {
	return client.Node{
		ID: n.ID, Name: n.Name, Addr: n.Addr, Roles: strings.FieldsFunc(n.Roles, func(r rune) bool { return r == ',' }), Version: n.Version,
		Schema: client.SchemaRange{Min: n.SchemaMin, Max: n.SchemaMax}, Shares: shares, StartedAt: client.At(n.StartedAt), SeenAt: client.At(n.SeenAt),
	}
}
