package script

import (
	"errors"
	"strings"
	"testing"
)

// A script that mentions require has none, as if it had not mentioned it.
func TestRequireIsNotThere(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for body, want := range map[string]string{
		`return typeof require`:                             `"undefined"`,
		`return typeof globalThis.require`:                  `"undefined"`,
		`return [require === undefined, "x" in globalThis]`: `[true,false]`,
	} {
		if got := valueOf(t, p, body, nil); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if _, err := Compile("a.workflow.ts", handler(`return require("fs")`)); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("a call of it: %v", err)
	}
}

// What scripts know from elsewhere is told where it is to be found here.
func TestMissingThingsAreExplained(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for body, says := range map[string]string{
		`await fetch("https://example.com")`: "ctx.tools",
		`setTimeout(() => {}, 1)`:            "wakeAt",
		`return process.env.KEY`:             "connections",
		`undefinedName()`:                    "is not defined",
	} {
		_, err := runBody(t, p, body, nil, Limits{})
		var thrown *Thrown
		if !errors.As(err, &thrown) || thrown.Name != "ReferenceError" || !strings.Contains(thrown.Message, says) || thrown.Line != 2 {
			t.Errorf("%s: %v", body, err)
		}
	}
	_, err := runBody(t, p, `const e = new Error("'fetch' is not defined"); throw e`, nil, Limits{})
	if err == nil || strings.Contains(err.Error(), "ctx.tools") {
		t.Errorf("another error: %v", err)
	}
}
