package tool

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Whoever approves a call sees where it goes: the host, the folder, the
// recipients, the database, the server; and no secret.
func TestAddressTellsWhereACallGoes(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": `
kind: connection
name: shop
type: http
baseUrl: https://shop.example.com/v1
headers: {Authorization: "Bearer ${TOKEN}"}
---
kind: connection
name: secretive
type: http
baseUrl: "https://shop.example.com/${TOKEN}"
---
kind: connection
name: outbox
type: file
root: ./out
---
kind: connection
name: post
type: smtp
host: mail.example.com
from: robot@example.com
username: robot
password: "${TOKEN}"
---
kind: connection
name: books
type: sql
url: "sqlite:./books.db"
---
kind: connection
name: ledger
type: sql
url: "postgres://ann:${TOKEN}@db.example.com:5432/ledger"
---
kind: connection
name: agent
type: mcp
url: https://mcp.example.com/v1?key=abc
---
kind: connection
name: shipping
type: workflow
workflow: shipping
---
kind: connection
name: poet
type: graph
graph: langgraph:poet
grant: 0192aaaa-0000-7000-8000-000000000000
`})
	env := Env{
		Getenv:    func(string) string { return "s3cret-value-of-token" },
		CheckOnly: true,
		Publish: func(context.Context, string, string, string, json.RawMessage, string) (json.RawMessage, error) {
			return nil, nil
		},
		Graph: func(context.Context, connector.GraphCall) (json.RawMessage, error) { return nil, nil },
	}
	set, err := Load(dir, env)
	if err != nil {
		t.Fatal(err, fieldsOf(err))
	}
	for _, test := range []struct{ connection, method, args, want string }{
		{"shop", "post", `{"path":"/orders","query":{"a":"b c"},"body":{}}`, "POST https://shop.example.com/v1/orders?a=b+c"},
		{"shop", "delete", `{"path":"x"}`, "DELETE https://shop.example.com/v1/x"},
		{"shop", "post", `{"path":"/../x"}`, ""},
		{"shop", "post", `[]`, ""},
		{"secretive", "post", `{"path":"/orders"}`, "POST https://shop.example.com/[secret TOKEN]/orders"},
		{"outbox", "write", `{"path":"a/b.txt","text":"x"}`, "write " + filepath.Join(dir, "out", "a", "b.txt")},
		{"outbox", "append", `{"path":"a.txt","line":"x"}`, "append " + filepath.Join(dir, "out", "a.txt")},
		{"outbox", "list", `{}`, "list " + filepath.Join(dir, "out")},
		{"outbox", "write", `{"path":"../b.txt","text":"x"}`, ""},
		{"post", "send", `{"to":"Your Boss <eve@example.org>","bcc":["bob@example.net"],"text":"x"}`, "to eve@example.org, bob@example.net from robot@example.com through mail.example.com:"},
		{"books", "exec", `{"sql":"delete from a"}`, "exec in the file ./books.db"},
		{"ledger", "exec", `{"sql":"delete from a"}`, "exec in the database db.example.com:5432/ledger"},
		{"agent", "send", `{}`, "send of https://mcp.example.com/v1"},
		{"shipping", "publish", `{"topic":"order.placed","messageId":"1"}`, `an event "order.placed" for the workflow shipping`},
		{"poet", "run", `{}`, "run the graph langgraph:poet under the grant 0192aaaa-0000-7000-8000-000000000000"},
	} {
		c, ok := set.Find(test.connection)
		if !ok {
			t.Fatalf("there is no connection %s", test.connection)
		}
		got := set.Address(Target{Connection: c, Name: test.connection, Method: Method{Name: test.method}}, json.RawMessage(test.args))
		if got != test.want && (test.connection != "post" || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s.%s(%s) goes to %q, want %q", test.connection, test.method, test.args, got, test.want)
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("%s.%s: the address has the secret: %q", test.connection, test.method, got)
		}
	}
	if got := set.Address(Target{Connection: shop{}}, nil); got != "" {
		t.Errorf("a connection that cannot tell goes to %q", got)
	}
}

// Every connector that can change something tells where.
func TestEveryConnectorHasAddresses(t *testing.T) {
	for name := range builtin() {
		if name == "source" { // it only reads
			continue
		}
		if !strings.Contains(addressed, " "+name+" ") {
			t.Errorf("connections of the type %s are not in the test of addresses", name)
		}
	}
}

// addressed are the types in the test above.
const addressed = " http file smtp sql mcp workflow graph "
