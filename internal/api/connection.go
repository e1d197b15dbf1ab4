package api

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/tool"
)

func (a *API) connectionOf(i tool.Info) client.Connection {
	out := client.Connection{Name: i.Name, Type: i.Type, Methods: []client.ConnectionMethod{}, Blocked: []client.BlockedMethod{}}
	for _, p := range a.tools.Blocked(i.Name) {
		out.Blocked = append(out.Blocked, client.BlockedMethod{Name: p.Method, Why: a.tools.RedactText(whyBlocked(p))})
	}
	if i.File != "" {
		out.File = client.NullString(filepath.Base(i.File)) // where it is, is the operator's business
	}
	for _, m := range i.Methods {
		class := "read"
		if m.Mutation {
			class = "mutation"
		}
		out.Methods = append(out.Methods, client.ConnectionMethod{Name: m.Name, Class: class, Policy: string(m.Policy), Reconciles: m.Reconciles})
	}
	return out
}

const connectionCursor = "connection"

func (a *API) listConnections(_ context.Context, in *PageInput) (*pageOutput[client.Connection], error) {
	after, err := in.place(connectionCursor)
	if err != nil {
		return nil, err
	}
	name := func(i tool.Info) string { return i.Name }
	list := following(a.tools.Describe(), after, in.Limit+1, name)
	return &pageOutput[client.Connection]{cutPage(list, in.Limit, connectionCursor, name, a.connectionOf)}, nil
}

// ConnectionPath is the input of requests about one connection.
type ConnectionPath struct {
	Name string `path:"name" example:"shop" doc:"The connection's name."`
}

func (a *API) getConnection(_ context.Context, in *ConnectionPath) (*output[client.Connection], error) {
	var names []string
	for _, i := range a.tools.Describe() {
		if i.Name == in.Name {
			return &output[client.Connection]{a.connectionOf(i)}, nil
		}
		names = append(names, i.Name)
	}
	return nil, &pawl.Error{Code: pawl.CodeNotFound, Op: "find connection", Msg: fmt.Sprintf("there is no connection %q", in.Name), Hint: choicesHint(in.Name, "connections", names)}
}

// testTimeout bounds a trial, so that there is an answer before the request
// itself is given up.
const testTimeout = handlerTimeout - 5*time.Second

type testConnectionInput struct {
	CheckedHeader
	ConnectionPath
}

// testConnection tries a connection out. It changes nothing, here or outside.
func (a *API) testConnection(ctx context.Context, in *testConnectionInput) (*output[client.ConnectionTest], error) {
	if err := a.check(ctx, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	text, err := a.tools.Test(ctx, in.Name)
	told := client.ConnectionTest{OK: err == nil, Text: text}
	if err != nil {
		e, ok := errors.AsType[*tool.Error](err)
		if !ok {
			return nil, err
		}
		told.Text = strings.TrimSpace(sentence(e.Msg) + " " + sentence(e.Hint)) // not the cause, which is for logs
	}
	told.Text = a.tools.RedactText(told.Text)
	return &output[client.ConnectionTest]{told}, nil
}
