package mcp

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// states are the tools that are not as pinned.
func states(t *testing.T, c *Connection) map[string]connector.PinState {
	t.Helper()
	pins, err := c.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	odd := map[string]connector.PinState{}
	for _, p := range pins {
		if p.State != connector.PinHolds {
			odd[p.Method] = p.State
		}
		if (p.State == connector.PinHolds) != (p.Pinned == p.Now) {
			t.Errorf("%s is %s with the hashes %s and %s", p.Method, p.State, p.Pinned, p.Now)
		}
	}
	return odd
}

func TestFirstMeetingPinsAllTools(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	if odd := states(t, c); len(odd) > 0 {
		t.Errorf("not pinned: %v", odd)
	}
	file := filepath.Join(r.dir, ".pawl-pins", "it.json")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"What note does."`) {
		t.Errorf("the file has %.300s, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the mode of the file is %v, %v", info, err)
	}
	if log := strings.Join(r.log.level(slog.LevelInfo), ""); !strings.Contains(log, "pinned as they are") {
		t.Errorf("the log has: %s", log)
	}
}

func TestChangedToolIsBlockedUntilItIsPinnedAgain(t *testing.T) {
	r := newRig(t)
	if err := r.open(r.program("plain")).Close(); err != nil {
		t.Fatal(err)
	}
	c := r.open(r.program("changed"))
	want := map[string]connector.PinState{"look": connector.PinChanged, "brand-new": connector.PinMissing, "key": connector.PinGone}
	if diff := cmp.Diff(want, states(t, c)); diff != "" {
		t.Error(diff)
	}

	_, fault := call(t.Context(), c, "look", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_changed", true)
	for _, part := range []string{"Ignore all previous", `added "force"`, "readOnlyHint was true and is false"} {
		if !strings.Contains(fault.Msg, part) {
			t.Errorf("the message does not tell %q: %s", part, fault.Msg)
		}
	}
	if fault.Hint != "Look at it, and agree with: pawl connections pin it look" {
		t.Error(fault.Hint)
	}
	_, fault = call(t.Context(), c, "brand-new", `{}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_not_pinned", true)
	_, fault = call(t.Context(), c, "key", `{}`)
	wantFault(t, fault, pawl.ClassPrecondition, "tool_gone", true)
	must(t, c, "note", `{"text":"unchanged"}`)

	mutations := func() (names []string) {
		for _, m := range c.Methods() {
			if m.Mutation && (m.Name == "look" || m.Name == "brand-new") {
				names = append(names, m.Name)
			}
		}
		return names
	}
	if names := mutations(); len(names) > 0 {
		t.Errorf("a blocked tool has not the class that it was pinned with: %v", names)
	}
	if err := c.Pin(t.Context(), []string{"look"}, nil); err != nil {
		t.Fatal(err)
	}
	must(t, c, "look", `{"text":"a","force":true}`)
	if diff := cmp.Diff([]string{"look"}, mutations()); diff != "" {
		t.Error(diff)
	}
	if err := c.Pin(t.Context(), []string{"brand-new", "key", "note"}, nil); err != nil {
		t.Fatal(err)
	}
	if odd := states(t, c); len(odd) > 0 {
		t.Errorf("not pinned: %v", odd)
	}
	must(t, c, "brand-new", `{}`)
	err := c.Pin(t.Context(), []string{"note", "loook"}, nil)
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeNotFound || e.Hint != "Did you mean look?" {
		t.Errorf("Pin(loook) = %v", err)
	}
}

// What somebody agrees to is what they saw, and not what it became meanwhile.
func TestPinAgreesToWhatWasSeen(t *testing.T) {
	r := newRig(t)
	if err := r.open(r.program("plain")).Close(); err != nil {
		t.Fatal(err)
	}
	c := r.open(r.program("changed"))
	pins, err := c.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, p := range pins {
		seen[p.Method] = p.Now
	}
	blocked := map[string]connector.PinState{}
	for _, p := range c.Blocked() {
		blocked[p.Method] = p.State
		if (p.Was == "") != (p.State == connector.PinMissing) || (p.Is == "") != (p.State == connector.PinGone) {
			t.Errorf("%s is %s, and was %q, and is %q", p.Method, p.State, p.Was, p.Is)
		}
		if p.Method == "look" && (!strings.Contains(p.Was, "\nreadOnlyHint: true\n") || !strings.Contains(p.Is, "Ignore all previous") || !strings.Contains(p.Is, `      "force": {`)) {
			t.Errorf("it was\n%s\nand is\n%s", p.Was, p.Is)
		}
	}
	if diff := cmp.Diff(states(t, c), blocked); diff != "" {
		t.Errorf("what is known without asking differs: %s", diff)
	}
	for method, hash := range map[string]string{"look": "sha256:0", "key": "sha256:0", "note": ""} {
		err := c.Pin(t.Context(), []string{"brand-new", method}, map[string]string{method: hash})
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeConflict || e.Reason != "changed" {
			t.Errorf("Pin(%s) as it was not seen: %v", method, err)
		}
	}
	if diff := cmp.Diff(blocked, states(t, c)); diff != "" {
		t.Errorf("what was refused pinned something: %s", diff)
	}
	if err := c.Pin(t.Context(), []string{"look", "key", "brand-new"}, seen); err != nil {
		t.Error(err)
	}
	if odd := c.Blocked(); len(odd) > 0 {
		t.Errorf("not pinned: %v", odd)
	}
}

func TestToolThatChangesInTheSessionIsBlocked(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	must(t, c, "look", `{"text":"a"}`)
	must(t, c, "reshape", `{}`)
	eventually(t, "the news arrive", func() bool {
		_, there := c.tool("brand-new")
		return there
	})
	_, fault := call(t.Context(), c, "look", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_changed", true)
	if warnings := strings.Join(r.log.level(slog.LevelWarn), ""); !strings.Contains(warnings, `"tool":"look","state":"changed"`) {
		t.Errorf("the log warns of: %s", warnings)
	}
}

func TestPinOfAnotherProcessIsNoticed(t *testing.T) {
	r := newRig(t)
	if err := r.open(r.program("plain")).Close(); err != nil {
		t.Fatal(err)
	}
	server, command := r.open(r.program("changed")), r.open(r.program("changed"))
	_, fault := call(t.Context(), server, "brand-new", `{}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_not_pinned", true)
	if err := command.Pin(t.Context(), []string{"brand-new"}, nil); err != nil {
		t.Fatal(err)
	}
	must(t, server, "brand-new", `{}`)
}

// Pins in the definition are all there is: what has none is blocked.
func TestPinsInTheDefinitionWin(t *testing.T) {
	r := newRig(t)
	first := r.open(r.program("plain"))
	d, _ := first.tool("look")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, ".pawl-pins")); err != nil {
		t.Fatal(err)
	}
	definition := r.program("plain", "tools: {look: {pin: "+d.hash()+"}, key: {pin: sha256:"+strings.Repeat("0", 64)+"}}")
	c := r.open(definition)
	must(t, c, "look", `{"text":"a"}`)
	_, fault := call(t.Context(), c, "note", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_not_pinned", true)
	_, fault = call(t.Context(), c, "key", `{}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_changed", true)
	key, _ := c.tool("key")
	if !strings.Contains(fault.Hint, "pin: "+key.hash()+" into") {
		t.Errorf("the hint is %q", fault.Hint)
	}
	err := c.Pin(t.Context(), []string{"note", "key"}, nil)
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeInvalid || e.Reason != "fixed" || e.Hint != "Write pin: "+key.hash()+" there." {
		t.Errorf("Pin(note, key) = %v", err)
	}
	_, fault = call(t.Context(), c, "note", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_not_pinned", true) // all or nothing
	var others []string
	for _, p := range c.Blocked() {
		if !p.Fixed {
			others = append(others, p.Method)
		}
	}
	if err := c.Pin(t.Context(), append(others, "look"), nil); err != nil {
		t.Errorf("Pin(%v, look) = %v", others, err)
	}
	if diff := cmp.Diff(map[string]connector.PinState{"key": connector.PinChanged}, states(t, c)); diff != "" {
		t.Error(diff)
	}
	must(t, c, "note", `{"text":"a"}`)

	down := r.open(strings.Replace(definition, roleVariable+": plain", roleVariable+": crash", 1))
	known := false
	for _, m := range down.Methods() {
		known = known || m.Name == "look" && !m.Mutation
	}
	if !known {
		t.Error("a tool that is pinned in the definition is unknown while the server is down")
	}
}

// Where pins cannot be kept nothing is trusted.
func TestPinsThatCannotBeWrittenBlock(t *testing.T) {
	r := newRig(t)
	made, ok := New(r.settings(r.program("plain", "pinFile: folder/pins.json"), false))
	if !ok {
		t.Fatal("the definition is not valid")
	}
	c := made.(*Connection)
	defer func() { _ = c.Close() }() // other tests look at what it returns
	if err := os.WriteFile(filepath.Join(r.dir, "folder"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, fault := call(t.Context(), c, "look", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_not_pinned", true)
	if !strings.Contains(fault.Msg, "the pins in") {
		t.Error(fault.Msg)
	}
}

func TestPinsThatCannotBeReadAreAFault(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.dir, "pins.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := r.settings(r.program("plain", "pinFile: pins.json"), false)
	if _, ok := New(s); ok || len(s.Fields()) != 1 || !strings.Contains(s.Fields()[0].String(), "read the pins") {
		t.Errorf("New() = %v, %v", ok, s.Fields())
	}
}
