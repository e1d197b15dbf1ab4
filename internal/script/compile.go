package script

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pawlrun/pawl/internal/visible"
)

const (
	// MaxSource is the most bytes of a script.
	MaxSource = 512 << 10

	// ModuleName is the only module that a script can import.
	ModuleName = "pawl"

	sourceFile = "script" // the script's name in source maps
	exportName = "__pawl" // where the prelude finds the exports
	maxFaults  = 20
)

// moduleSource is the module "pawl". Its functions return what they get: they
// exist for the types, see pawl.d.ts.
const moduleSource = `const same = (definition) => definition;
export { same as workflow, same as producer, same as consumer };
`

// Compile translates a script, TypeScript unless the name ends as JavaScript
// does, to one piece of JavaScript with a source map. It runs in this process:
// a source made to exhaust the compiler can take the process down, so what
// comes from outside is compiled by Pool.Compile.
//
// It returns a *pawl.Error with Diagnostics for a source that has faults.
// Types are not checked.
func Compile(file, source string) (*Program, error) {
	file = cleanName(file)
	made, err := translate(file, source)
	if err != nil {
		return nil, err
	}
	program := NewProgram(file, made.JavaScript, []byte(made.SourceMap))
	program.Version, program.Warnings = version(file, source), made.Warnings
	return program, nil
}

func translate(file, source string) (made compiled, err error) {
	if len(source) > MaxSource {
		return made, invalid(file, Diagnostic{
			Message: fmt.Sprintf("the script has %d bytes; the limit is %s", len(source), sizeText(MaxSource)),
			Hint:    "split it into several workflows",
		})
	}
	options := api.BuildOptions{
		Stdin:         &api.StdinOptions{Contents: source, Sourcefile: sourceFile, Loader: loader(file)},
		Plugins:       []api.Plugin{onlyPawl(file)},
		AbsWorkingDir: "/",
		TsconfigRaw:   "{}", // a file beside the program must not matter
		Bundle:        true,
		Outfile:       "out.js",
		Write:         false,
		Format:        api.FormatIIFE,
		GlobalName:    exportName,
		Platform:      api.PlatformNeutral,
		Target:        api.ES2022,
		Charset:       api.CharsetASCII, // so that columns mean the same to everyone
		Banner:        map[string]string{"js": `"use strict";`},
		Sourcemap:     api.SourceMapExternal,
		// Whoever looks for a place has the source.
		SourcesContent: api.SourcesContentExclude,
		LegalComments:  api.LegalCommentsNone,
		LogLevel:       api.LogLevelSilent,
		LogLimit:       maxFaults,
	}
	result := api.Build(options)
	if len(result.Errors) == 0 && mentionsRequire(result.OutputFiles) {
		// It calls none, which is a fault of its own; else the compiler gives it
		// a function of that name that always throws.
		options.Define = map[string]string{"require": "undefined"}
		result = api.Build(options)
	}
	if len(result.Errors) > 0 {
		return made, invalid(file, diagnostics(result.Errors, file)...)
	}
	made.Warnings = diagnostics(result.Warnings, file)
	for _, output := range result.OutputFiles {
		if strings.HasSuffix(output.Path, ".map") {
			made.SourceMap = string(output.Contents)
		} else {
			made.JavaScript = string(output.Contents)
		}
	}
	return made, nil
}

// mentionsRequire reports whether the compiler has added its own require.
func mentionsRequire(files []api.OutputFile) bool {
	return slices.ContainsFunc(files, func(f api.OutputFile) bool {
		return !strings.HasSuffix(f.Path, ".map") && bytes.Contains(f.Contents, []byte("__require"))
	})
}

// onlyPawl resolves the built-in module and refuses every other import.
func onlyPawl(file string) api.Plugin {
	return api.Plugin{Name: "pawl", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if args.Path == ModuleName && args.Kind == api.ResolveJSImportStatement {
				return api.OnResolveResult{Path: ModuleName, Namespace: ModuleName}, nil
			}
			return api.OnResolveResult{Errors: []api.Message{{
				Text:  fmt.Sprintf("%q cannot be imported", args.Path),
				Notes: []api.Note{{Text: `a script can import from "pawl" and from nothing else; put the code into ` + file}},
			}}}, nil
		})
		build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: ModuleName}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			contents := moduleSource
			return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, nil
		})
	}}
}

func diagnostics(messages []api.Message, file string) []Diagnostic {
	var list []Diagnostic
	for _, m := range messages[:min(len(messages), maxFaults)] {
		d := Diagnostic{Place: Place{File: file}, Message: visible.Truncate(m.Text, mostText)}
		if m.Location != nil {
			d.Line, d.Column, d.Text = m.Location.Line, column(m.Location), visible.Truncate(m.Location.LineText, 200)
		}
		if m.Location != nil && m.Location.Suggestion != "" {
			d.Hint = "write " + visible.Truncate(m.Location.Suggestion, 200)
		}
		if len(m.Notes) > 0 {
			d.Hint = visible.Truncate(m.Notes[0].Text, mostText)
		}
		list = append(list, d)
	}
	return list
}

func loader(file string) api.Loader {
	if isJavaScript(file) {
		return api.LoaderJS
	}
	return api.LoaderTS
}

func isJavaScript(file string) bool {
	switch path.Ext(file) {
	case ".js", ".mjs", ".cjs":
		return true
	}
	return false
}

// column counts from 1 in UTF-16 units, as source maps and editors do; esbuild
// counts bytes.
func column(at *api.Location) int {
	before := at.LineText[:min(at.Column, len(at.LineText))]
	return len(utf16.Encode([]rune(before))) + 1
}

// cleanName is the name in messages: one line, and not endless.
func cleanName(file string) string {
	if file == "" {
		return "workflow.ts"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, visible.Truncate(file, 500))
}
