package api

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool"
)

// Connection is something that scripts may touch, without its settings: these
// may hold secrets.
type Connection struct {
	Name    string             `json:"name" example:"shop" doc:"What scripts call it: ctx.tools.shop."`
	Type    string             `json:"type" example:"http"`
	File    *string            `json:"file" example:"shop.yaml" doc:"The file of its definition, without the folder; null if it has none."`
	Methods []ConnectionMethod `json:"methods" nullable:"false" doc:"What it can do, by name."`
	Blocked []BlockedMethod    `json:"blocked" nullable:"false" doc:"Methods that are refused until somebody pins them, as far as is known without asking the other side."`
}

// ConnectionMethod is one thing that a connection can do.
type ConnectionMethod struct {
	Name       string `json:"name" example:"post"`
	Class      string `json:"class" enum:"read,mutation" doc:"Whether it changes the outside."`
	Policy     string `json:"policy" enum:"allow,ask,deny" doc:"What happens when a script calls it; ask waits for a person."`
	Reconciles bool   `json:"reconciles" doc:"The other side can be asked later what became of a call."`
}

// BlockedMethod is a method that is not what was agreed to.
type BlockedMethod struct {
	Name string `json:"name" example:"delete_file"`
	Why  string `json:"why" example:"It was never pinned."`
}

func (a *API) connectionOf(i tool.Info) Connection {
	out := Connection{Name: i.Name, Type: i.Type, Methods: []ConnectionMethod{}, Blocked: []BlockedMethod{}}
	for _, p := range a.tools.Blocked(i.Name) {
		out.Blocked = append(out.Blocked, BlockedMethod{p.Method, a.tools.RedactText(whyBlocked(p))})
	}
	if i.File != "" {
		out.File = orNull(filepath.Base(i.File)) // where it is, is the operator's business
	}
	for _, m := range i.Methods {
		class := "read"
		if m.Mutation {
			class = "mutation"
		}
		out.Methods = append(out.Methods, ConnectionMethod{m.Name, class, string(m.Policy), m.Reconciles})
	}
	return out
}

type listConnectionsOutput struct{ Body Page[Connection] }

const connectionCursor = "connection"

func (a *API) listConnections(_ context.Context, in *PageInput) (*listConnectionsOutput, error) {
	after, err := in.place(connectionCursor)
	if err != nil {
		return nil, err
	}
	name := func(i tool.Info) string { return i.Name }
	list := following(a.tools.Describe(), after, in.Limit+1, name)
	return &listConnectionsOutput{cutPage(list, in.Limit, connectionCursor, name, a.connectionOf)}, nil
}

// ConnectionPath is the input of requests about one connection.
type ConnectionPath struct {
	Name string `path:"name" example:"shop" doc:"The connection's name."`
}

type connectionOutput struct{ Body Connection }

func (a *API) getConnection(_ context.Context, in *ConnectionPath) (*connectionOutput, error) {
	var names []string
	for _, i := range a.tools.Describe() {
		if i.Name == in.Name {
			return &connectionOutput{a.connectionOf(i)}, nil
		}
		names = append(names, i.Name)
	}
	return nil, &pawl.Error{Code: pawl.CodeNotFound, Op: "find connection", Msg: fmt.Sprintf("there is no connection %q", in.Name), Hint: choicesHint(in.Name, "connections", names)}
}

// ConnectionTest is how it went to try a connection out.
type ConnectionTest struct {
	OK   bool   `json:"ok" doc:"Calls would work, as far as that can be told without making one."`
	Text string `json:"text" example:"The server answered 200." doc:"What was seen, for people."`
}

type testConnectionOutput struct{ Body ConnectionTest }

// testTimeout bounds a trial, so that there is an answer before the request
// itself is given up.
const testTimeout = handlerTimeout - 5*time.Second

type testConnectionInput struct {
	CheckedHeader
	ConnectionPath
}

// testConnection tries a connection out. It changes nothing, here or outside.
func (a *API) testConnection(ctx context.Context, in *testConnectionInput) (*testConnectionOutput, error) {
	if err := a.check(ctx, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	text, err := a.tools.Test(ctx, in.Name)
	told := ConnectionTest{OK: err == nil, Text: text}
	if err != nil {
		e, ok := errors.AsType[*tool.Error](err)
		if !ok {
			return nil, err
		}
		told.Text = strings.TrimSpace(sentence(e.Msg) + " " + sentence(e.Hint)) // not the cause, which is for logs
	}
	told.Text = a.tools.RedactText(told.Text)
	return &testConnectionOutput{told}, nil
}
