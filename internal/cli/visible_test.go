package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"

	pawl "github.com/pawlrun/pawl"
)

// hostile is text that a terminal would obey, or that looks like something else.
const hostile = "pay \x1b[2J\x1b]0;owned\x07 \u009b31m \u202e0001\u202c EUR\u200b \u2066x\u2069 \x00\x7f \U000e0041 end"

// terminalSafe fails the test if a text has something that a terminal obeys, that
// turns its direction, or that nobody sees.
func terminalSafe(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%s writes %U:\n%q", what, r, text)
			return
		}
	}
	if !strings.Contains(text, "end") {
		t.Errorf("%s lost the text: %q", what, text)
	}
}

// Every format shows hostile text as what it is: tables, descriptions, errors,
// YAML and JSON, on a terminal or not.
func TestOutputCarriesNothingHidden(t *testing.T) {
	raw, err := json.Marshal(map[string]any{"items": []any{map[string]any{"id": "1", "title": hostile, hostile: []string{hostile, "plain"}, "n": 7}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{formatJSON, formatYAML} {
		var b strings.Builder
		if err := writeMachine(&b, format, raw); err != nil {
			t.Fatal(err)
		}
		terminalSafe(t, format, b.String())
		var back any
		if format == formatJSON {
			err = json.Unmarshal([]byte(b.String()), &back)
		} else {
			err = yaml.Unmarshal([]byte(b.String()), &back)
		}
		if err != nil {
			t.Errorf("%s cannot be read: %v\n%s", format, err, b.String())
			continue
		}
		item := back.(map[string]any)["items"].([]any)[0].(map[string]any)
		if item["title"] != hostile || fmt.Sprint(item[hostile]) != fmt.Sprint([]any{hostile, "plain"}) {
			t.Errorf("%s is another value: %q", format, item)
		}
	}
	for _, terminal := range []bool{true, false} {
		p := &Process{Getenv: func(string) string { return "1" }, StdoutTerminal: terminal, StderrTerminal: terminal, Width: 400}
		var out, talk strings.Builder
		p.Stdout, p.Stderr = &out, &talk
		if err := newSheet(p, []column{{title: "title"}, {title: "state", state: true}}).write(&out, [][]string{{hostile, hostile}}, true); err != nil {
			t.Fatal(err)
		}
		terminalSafe(t, "a table", out.String())
		p.printError(&pawl.Error{Code: pawl.CodeConflict, Reason: hostile, Msg: hostile, Hint: hostile, Err: errors.New(hostile), Fields: []pawl.Field{{Pointer: "/" + hostile, Message: hostile}}})
		p.printError(errors.New(hostile))
		p.sayFault(hostile, "", fault{Message: hostile, Hint: hostile, Line: 1})
		terminalSafe(t, "an error", strings.ReplaceAll(talk.String(), "\t", ""))
	}
	d := newDescription(time.Now())
	d.say("%s", hostile)
	d.line("Title", hostile)
	d.json("Value", raw)
	d.table("Table", []column{{title: "a"}}, [][]string{{hostile}})
	terminalSafe(t, "a description", d.String())
}

// What a lane is told to be comes from outside, too.
func TestWhyCarriesNothingHidden(t *testing.T) {
	raw, err := json.Marshal(map[string]any{
		"kind": "workflow", "name": hostile, "status": "Needs attention", "issue": hostile, "next": hostile, "do": hostile, "schedule": hostile,
		"lastActivity": map[string]any{"text": hostile}, "gates": []any{map[string]any{"name": hostile, "text": hostile}},
		"recent": []any{map[string]any{"id": hostile, "handler": hostile, "status": hostile, "error": map[string]any{"message": hostile}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := describeWhy(raw, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	terminalSafe(t, "why", words)
	if !strings.Contains(words, "Do:") {
		t.Errorf("the command is missing:\n%s", words)
	}
}
