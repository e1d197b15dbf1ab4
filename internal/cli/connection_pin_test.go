package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

const (
	heldPin    = `{"method":"get","class":"read","state":"pinned","pinned":"g","now":"g","change":null,"was":null,"is":null,"fixed":false}`
	changedPin = `{"method":"look","class":"mutation","state":"changed","pinned":"l0","now":"l1","change":"x","was":"description:\n  Looks.\nreadOnlyHint: true\n","is":"description:\n  Looks` + "\u202e" + `.\nreadOnlyHint: true\n","fixed":false}`
	newPin     = `{"method":"news","class":"read","state":"new","pinned":null,"now":"n1","change":null,"was":null,"is":"description:\n  News.\n","fixed":false}`
	fixedPin   = `{"method":"fix","class":"read","state":"changed","pinned":"f0","now":"f1","change":"its earlier version was not kept","was":null,"is":"description:\n","fixed":true}`
)

func pinAPI(t *testing.T, pins ...string) *fake {
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/connections/box/pins":   {200, `{"items":[` + strings.Join(pins, ",") + `]}`},
		"POST /api/v1/connections/box/pins":  {200, `{"pinned":["look","news"],"blocked":["fix"]}`},
		"GET /api/v1/connections/shop/pins":  {409, "nothing_to_pin"},
		"GET /api/v1/connections/down/pins":  {200, `{"items":[` + newPin + `]}`},
		"POST /api/v1/connections/down/pins": {409, "changed"},
	})
}

// Without a method it shows what is blocked and changes nothing.
func TestPinShowsWhatIsBlocked(t *testing.T) {
	f := pinAPI(t, fixedPin, heldPin, changedPin, newPin)
	r := f.run("connections", "pin", "box")
	r.expect(t, pawl.ExitDone)
	want := `fix is not what was agreed to; it reads
  Its pin is in the definition; agree by writing there: pin: f1
  its earlier version was not kept

look is not what was agreed to; it has side effects
  --- agreed
  +++ now
  @@ -1,3 +1,3 @@
   description:
  -  Looks.
  +  Looks\u202e.
   readOnlyHint: true

news is new; it reads
  --- agreed
  +++ now
  @@ -0,0 +1,2 @@
  +description:
  +  News.

Agree with: pawl connections pin box METHOD...
or to all:  pawl connections pin box --all
`
	if diff := cmp.Diff(want, r.stdout); diff != "" || f.requests() != "GET /api/v1/connections/box/pins?limit=200" {
		t.Errorf("asked %s:\n%s", f.requests(), diff)
	}
	if r := f.run("connections", "pin", "box", "-o", "json"); !strings.Contains(r.stdout, `"state": "changed"`) {
		t.Errorf("%s", r.stdout)
	}
	r = pinAPI(t, heldPin).run("connections", "pin", "box")
	if r.expect(t, pawl.ExitDone); r.stdout != "Nothing is blocked: the 1 tool is as agreed to.\n" {
		t.Errorf("%s", r.stdout)
	}
}

// What is agreed to is what was read, so that another one is refused.
func TestPinAgreesToWhatItRead(t *testing.T) {
	for _, args := range [][]string{{"look", "news"}, {"--all"}} {
		f := pinAPI(t, fixedPin, heldPin, changedPin, newPin)
		r := f.run(append([]string{"connections", "pin", "box"}, args...)...)
		r.expect(t, pawl.ExitDone, "fix stays blocked: its pin is in the definition of the connection.")
		if diff := cmp.Diff([]string{`{"methods":["look","news"],"seen":{"look":"l1","news":"n1"}}`}, f.sent()); diff != "" || r.stdout != "connection box: agreed to look, news\n" {
			t.Errorf("%v: %s%s", args, diff, r.stdout)
		}
	}
	f := pinAPI(t, heldPin)
	if r := f.run("connections", "pin", "box", "--all"); r.code != pawl.ExitDone || len(f.sent()) > 0 || r.stdout != "connection box: nothing new to agree to\n" {
		t.Errorf("%+v", r)
	}
	f.run("connections", "pin", "down", "news").expect(t, pawl.ExitRefused, "(changed)")
	f.run("connections", "pin", "shop").expect(t, pawl.ExitRefused, "(nothing_to_pin)")
	f.run("connections", "pin", "box", "look", "--all").expect(t, pawl.ExitUsage, "--all and methods cannot go together")
	f.run("connections", "pin", "..").expect(t, pawl.ExitUsage, "names no connection")
}

// People see which tools are blocked wherever they look at a connection.
func TestBlockedToolsAreShownInWords(t *testing.T) {
	const box = `{"name":"box","type":"mcp","file":"box.yaml","methods":[{"name":"look","class":"read","policy":"allow","reconciles":false}],"blocked":[{"name":"look","why":"It was never pinned."}]}`
	f := newFake(t, map[string]fakeJSON{"GET /api/v1/connections": {200, `{"items":[` + box + `]}`}, "GET /api/v1/connections/box": {200, box}})
	if r := f.run("get", "connections", "-o", "wide"); !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), "box mcp look - - look box.yaml") {
		t.Errorf("%s", r.stdout)
	}
	r := f.run("describe", "connection", "box")
	for _, w := range []string{"Blocked until you accept them as they are now:\n", "look     It was never pinned.", "Look at them with: pawl connections pin box\n"} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
}
