package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// trial is a connection that can be tried out.
type trial struct {
	*desk
	err error
}

func (c trial) Test(context.Context) (string, error) {
	if c.err != nil {
		return "", c.err
	}
	return "The desk is there.", nil
}

// Connections are shown with what they can do, and with nothing of their
// settings.
func TestConnectionsAreListed(t *testing.T) {
	both(t, func(r *rig) {
		list := pages[client.Connection](r, "/api/v1/connections?limit=1")
		raw, _ := json.Marshal(list)
		want := `[{"name":"desk","type":"test","file":null,"methods":[` + strings.Join([]string{
			`{"name":"ask","class":"mutation","policy":"ask","reconciles":false}`, `{"name":"busy","class":"read","policy":"allow","reconciles":false}`,
			`{"name":"doubt","class":"mutation","policy":"allow","reconciles":true}`, `{"name":"get","class":"read","policy":"allow","reconciles":false}`,
			`{"name":"lock","class":"mutation","policy":"allow","reconciles":false}`, `{"name":"lose","class":"mutation","policy":"allow","reconciles":false}`,
			`{"name":"put","class":"mutation","policy":"allow","reconciles":false}`, `{"name":"wait","class":"read","policy":"allow","reconciles":false}`,
		}, ",") + `],"blocked":[]}]`
		if string(raw) != want {
			t.Errorf("got  %s\nwant %s", raw, want)
		}
		var one client.Connection
		r.do("GET", "/api/v1/connections/desk", nil).want(200).into(&one)
		if one.Name != "desk" || len(one.Methods) != 8 {
			t.Errorf("%+v", one)
		}
		if p := r.do("GET", "/api/v1/connections/deks", nil).problem(404, "not_found"); !strings.Contains(p.Hint, `"desk"`) {
			t.Errorf("%+v", p)
		}
	})
}

func TestConnectionsArePaged(t *testing.T) {
	both(t, func(r *rig) {
		var named []tool.Named
		for i := range 5 {
			named = append(named, tool.Named{Name: fmt.Sprintf("c%d", i), Type: "test", Connection: r.desk})
		}
		r.api.tools = mustSet(t, named...)
		var names []string
		for _, c := range pages[client.Connection](r, "/api/v1/connections?limit=2") {
			names = append(names, c.Name)
		}
		if fmt.Sprint(names) != "[c0 c1 c2 c3 c4]" {
			t.Errorf("%v", names)
		}
	})
}

func mustSet(t *testing.T, named ...tool.Named) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(named...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A trial tells what it saw. That a connection does not work is an answer, not
// an error of the request.
func TestConnectionIsTriedOut(t *testing.T) {
	both(t, func(r *rig) {
		down := &tool.Error{Class: pawl.ClassTransient, Code: "down", Msg: "nobody is there", Hint: "knock", Err: errors.New("inner words")}
		r.api.tools = mustSet(t,
			tool.Named{Name: "good", Type: "test", Connection: trial{desk: r.desk}},
			tool.Named{Name: "down", Type: "test", Connection: trial{desk: r.desk, err: down}},
			tool.Named{Name: "mute", Type: "test", Connection: r.desk},
			tool.Named{Name: "odd", Type: "test", Connection: trial{desk: r.desk, err: errors.New("inner words")}},
		)
		for name, want := range map[string]client.ConnectionTest{
			"good": {OK: true, Text: "The desk is there."},
			"down": {OK: false, Text: "Nobody is there. Knock."},
			"mute": {OK: true, Text: "A connection of the type test cannot be tried without an effect; its definition is in order."},
		} {
			var got client.ConnectionTest
			r.do("POST", "/api/v1/connections/"+name+"/test", nil).want(200).into(&got)
			if got != want {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if p := r.do("POST", "/api/v1/connections/odd/test", nil).problem(500, "internal"); strings.Contains(p.Detail, "inner") {
			t.Errorf("%+v", p)
		}
		if p := r.do("POST", "/api/v1/connections/god/test", nil).problem(404, "not_found"); !strings.Contains(p.Hint, "good") {
			t.Errorf("%+v", p)
		}
		r.as(r.token("vera", userstore.RoleViewer, "*"), "POST", "/api/v1/connections/good/test", nil).problem(403, "forbidden")
		r.do("GET", "/api/v1/connections/good/test", nil).problem(405, "method_not_allowed")
	})
}

// The definition's secrets and the folder of its file stay where they are.
func TestConnectionsTellNoSecrets(t *testing.T) {
	both(t, func(r *rig) {
		const secret = "hunter2hunter2"
		dir := t.TempDir()
		definition := "kind: connection\nname: outbox\ntype: file\nroot: ./" + "${BOX}\n"
		if err := os.Mkdir(filepath.Join(dir, secret), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "box.yaml"), []byte(definition), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := tool.Load(dir, tool.Env{Getenv: func(string) string { return secret }})
		if err != nil {
			t.Fatal(err)
		}
		r.api.tools = set
		id := r.askedRun().ID
		r.exec(`update approvals set arguments = $1, title = $2`, `{"key":"`+secret+`"}`, "pay with "+secret)
		var one client.Connection
		r.do("GET", "/api/v1/connections/outbox", nil).want(200).into(&one)
		if one.File == "" || string(one.File) != "box.yaml" || one.Type != "file" {
			t.Errorf("%+v", one)
		}
		told := r.do("GET", "/api/v1/connections", nil).want(200).body
		told = append(told, r.do("POST", "/api/v1/connections/outbox/test", nil).want(200).body...)
		told = append(told, r.do("GET", "/api/v1/approvals", nil).want(200).body...)
		told = append(told, r.do("GET", "/api/v1/runs/"+id, nil).want(200).body...)
		if strings.Contains(string(told), secret) || strings.Contains(string(told), dir) {
			t.Errorf("%s", told)
		}
		if !strings.Contains(string(told), "[secret BOX]") {
			t.Errorf("nothing was left out: %s", told)
		}
	})
}
