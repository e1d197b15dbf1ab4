package web

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"path"
	"reflect"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/terms"
)

//go:embed all:templates
var templateFiles embed.FS

// pages are the templates by the name of their file, each inside the frame.
type pages map[string]*template.Template

// parsePages reads every template. A page is one file; what begins with an
// underscore is shared by all.
func parsePages() (pages, error) {
	entries, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	assets, err := assetVersions()
	if err != nil {
		return nil, err
	}
	shared, err := template.New("").Funcs(functions(assets)).ParseFS(templateFiles, "templates/_*.html")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	out := pages{}
	for _, e := range entries {
		if e.Name()[0] == '_' {
			continue
		}
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, path.Join("templates", e.Name()))
		}
		if err != nil {
			return nil, fmt.Errorf("read template %s: %w", e.Name(), err)
		}
		out[e.Name()] = t
	}
	return out, nil
}

// framed is what a template sees: the frame, and the page's own content as Do.
type framed struct {
	frame
	Do any
}

func (p pages) write(w io.Writer, name string, f frame) error {
	t := p[name]
	if t == nil {
		return fmt.Errorf("there is no template %s", name)
	}
	return t.ExecuteTemplate(w, "frame", framed{f, f.body})
}

// functions are what templates can call.
func functions(assets map[string]string) template.FuncMap {
	return template.FuncMap{
		"asset":        func(name string) (string, error) { return assetAddress(assets, name) },
		"actor":        actor,
		"subjectPath":  subjectPath,
		"ago":          ago,
		"instant":      instant,
		"stamp":        stamp,
		"until":        until,
		"took":         took,
		"tone":         tone,
		"sign":         sign,
		"called":       ofText(called),
		"pretty":       pretty,
		"short":        short,
		"number":       number,
		"plural":       plural,
		"segment":      ofText(pathSegment),
		"sentence":     sentence,
		"usd":          usd,
		"daysUntil":    daysUntil,
		"keepWords":    terms.KeepWords,
		"missedWords":  terms.MissedWords,
		"retryWords":   terms.RetryWords,
		"needsWords":   terms.NeedsWords,
		"waiting":      waitingCount,
		"times":        ofText(readTimes),
		"inZone":       inZone,
		"gateName":     gateName,
		"given":        given,
		"size":         size,
		"callName":     callName,
		"callState":    callState,
		"callError":    callError,
		"questionText": questionText,
		"slotOutcome":  func(s client.Slot) string { return slotOutcome(s.Status, string(s.Disposition)) },
		"slotActions":  slotActions,
		"slotAction":   slotAction,
		"written":      written,
		"args":         arguments,
		"list":         func(items ...any) []any { return items },
	}
}

// ofText makes a function of texts one of every type of text that the API has.
func ofText(f func(string) string) func(any) string {
	return func(text any) string { return f(reflect.ValueOf(text).String()) }
}

// arguments makes a map of names and values, for templates that call others.
func arguments(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a name", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}
