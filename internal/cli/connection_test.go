package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

const shopConnection = `{"name":"shop","type":"http","file":"shop.yaml","methods":[{"name":"delete","class":"mutation","policy":"deny","reconciles":false},` +
	`{"name":"get","class":"read","policy":"allow","reconciles":false},{"name":"patch","class":"mutation","policy":"ask","reconciles":false},{"name":"post","class":"mutation","policy":"ask","reconciles":true}]}`

func connectionAPI(t *testing.T) *fake {
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/connections":            {200, `{"items":[` + shopConnection + `]}`},
		"GET /api/v1/connections/shop":       {200, shopConnection},
		"POST /api/v1/connections/shop/test": {200, `{"ok":true,"text":"The shop\u001b answered 200."}`},
		"POST /api/v1/connections/down/test": {200, `{"ok":false,"text":"Nobody is there. Knock."}`},
	})
}

func TestConnectionsAreShownByPolicy(t *testing.T) {
	f := connectionAPI(t)
	r := f.run("get", "connections", "-o", "wide")
	r.expect(t, pawl.ExitDone)
	if lines := strings.Split(r.stdout, "\n"); strings.Join(strings.Fields(lines[0]), " ") != "NAME TYPE MAY ASKS FOR MUST NOT BLOCKED FILE" || strings.Join(strings.Fields(lines[1]), " ") != "shop http get patch,post delete - shop.yaml" {
		t.Errorf("%s", r.stdout)
	}
	if one := f.run("get", "conn", "shop", "-o", "json").stdout; !strings.Contains(one, `"file": "shop.yaml"`) {
		t.Errorf("%s", one)
	}
}

func TestDescribeTellsAConnectionInWords(t *testing.T) {
	r := connectionAPI(t).run("describe", "connection", "shop")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"The connection shop is of the type http. Scripts call it as ctx.tools.shop.\nTry it out with: pawl connections test shop\n", "File:         shop.yaml",
		"delete   has side effects   deny: the call is refused          a person is asked what happened", "get      reads              allow: the call is made            -",
		"post     has side effects   ask: a person approves each call   the other side is asked what happened",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	for raw, want := range map[string]string{`{"name":"a"}`: "does not know them yet", `{"methods":[{"name":"a","policy":"later"}]}`: "later"} {
		if got, err := describeConnection(json.RawMessage(raw), time.Now()); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v\n%s", raw, err, got)
		}
	}
}

// A connection that does not work ends the command with 1, however it is told.
func TestConnectionIsTriedOut(t *testing.T) {
	f := connectionAPI(t)
	r := f.run("connections", "test", "shop")
	if r.expect(t, pawl.ExitDone); r.stdout != "connection shop works: The shop\\u001b answered 200.\n" {
		t.Errorf("%s", r.stdout)
	}
	r = f.run("connections", "test", "down")
	if r.expect(t, pawl.ExitFailed, "connection down does not work: Nobody is there. Knock."); r.stdout != "" {
		t.Errorf("%s", r.stdout)
	}
	r = f.run("connection", "test", "down", "-o", "json")
	if r.expect(t, pawl.ExitFailed, "does not work"); !strings.Contains(r.stdout, `"ok": false`) {
		t.Errorf("%s", r.stdout)
	}
	f.run("connections", "test", "absent").expect(t, pawl.ExitNotFound)
	f.run("connections", "test", "..").expect(t, pawl.ExitUsage, "names no connection")
	f.run("connections", "tset").expect(t, pawl.ExitUsage, "Did you mean test?")
}
