package file

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of arguments, in bytes. A text can be six times as long in JSON.
const (
	largestText      = 4 << 20
	largestArguments = 6*largestText + 64<<10
)

// readArguments are those of read and list.
type readArguments struct {
	Path *string `json:"path"`
}

type appendArguments struct {
	Path    *string         `json:"path"`
	Text    *string         `json:"text"`
	Content *string         `json:"content"` // the same as text
	Line    *string         `json:"line"`
	JSON    json.RawMessage `json:"json"`
}

type writeArguments struct {
	Path    *string         `json:"path"`
	Text    *string         `json:"text"`
	Content *string         `json:"content"` // the same as text
	JSON    json.RawMessage `json:"json"`
}

// change is a mutation that a script asks for, checked.
type change struct {
	path string
	data []byte
}

func parseAppend(raw json.RawMessage) (change, error) {
	var a appendArguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return change{}, err
	}
	path, err := cleanPath(a.Path)
	if err != nil {
		return change{}, err
	}
	data, err := oneText("text, line or json", a.Text, a.Content, asLine(a.Line), asJSON(a.JSON))
	if err == nil && a.Line != nil && strings.ContainsAny(*a.Line, "\r\n") {
		err = connector.BadArguments("Use text for several lines.", "line is more than one line")
	}
	return change{path: path, data: data}, err
}

func parseWrite(raw json.RawMessage) (change, error) {
	var a writeArguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return change{}, err
	}
	path, err := cleanPath(a.Path)
	if err != nil {
		return change{}, err
	}
	data, err := oneText("text or json", a.Text, a.Content, asJSON(a.JSON))
	return change{path: path, data: data}, err
}

// oneText returns the one text that was given.
func oneText(names string, texts ...*string) ([]byte, error) {
	var given []string
	for _, text := range texts {
		if text != nil {
			given = append(given, *text)
		}
	}
	switch {
	case len(given) != 1:
		return nil, connector.BadArguments("Give exactly one of "+names+".", "there are %d of %s", len(given), names)
	case len(given[0]) > largestText:
		return nil, connector.BadArguments("Split it into several calls or files.", "there are %d bytes to write, more than the %d allowed", len(given[0]), largestText)
	}
	return []byte(given[0]), nil
}

// asLine is a text with the end of its line.
func asLine(text *string) *string {
	if text == nil {
		return nil
	}
	return new(*text + "\n")
}

// asJSON is a value on one line. The value was parsed before.
func asJSON(value json.RawMessage) *string {
	if value == nil {
		return nil
	}
	var text bytes.Buffer
	_ = json.Compact(&text, value) // it was decoded, so it is JSON
	return asLine(new(text.String()))
}
