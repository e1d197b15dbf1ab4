package script

import (
	"errors"
	"strings"
)

// compiled is what a worker makes of a source.
type compiled struct {
	JavaScript string       `json:"javascript"`
	SourceMap  string       `json:"sourceMap"`
	Warnings   []Diagnostic `json:"warnings"`
	Faults     []Diagnostic `json:"faults"`
}

// compilePayload serves a toCompile frame.
func compilePayload(payload []byte) compiled {
	file, source, _ := strings.Cut(string(payload), "\x00")
	made, err := translate(cleanName(file), source)
	if faults, ok := errors.AsType[Diagnostics](err); ok {
		return compiled{Faults: faults}
	}
	if len(made.JavaScript) > mostProgram/4 || len(made.SourceMap) > mostProgram/4 {
		return compiled{Faults: []Diagnostic{{Place: Place{File: file}, Message: "the script becomes too large when it is compiled"}}}
	}
	return made
}
