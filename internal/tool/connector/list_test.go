package connector

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

func TestListsAreReadAsTheyAreWritten(t *testing.T) {
	for _, test := range []struct{ text, want, fault string }{
		{"list: [a, '${B}', \"c d\", '']", "a|${B}|c d|", ""},
		{"list:\n  - a\n  - -b", "a|-b", ""},
		{"list: a", "", "x:1:7: list must be a list of texts"},
		{"list: []", "", "x:1:7: list must be a list of texts"},
		{"list: {a: b}", "", "list must be a list of texts"},
		{"list: [a, 5, true, [b]]", "", "x:1:11: list must be a list of texts; put others in quotes"},
		{"other: x", "", ""},
	} {
		parsed, err := parser.ParseBytes([]byte(test.text), 0)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSettings(Origin{File: "x"}, parsed.Docs[0].Body.(*ast.MappingNode))
		fields, ok := s.List("list")
		var values []string
		for _, f := range fields {
			values = append(values, f.Value)
		}
		faults := s.Faults()
		switch {
		case test.fault == "" && (ok != (test.want != "") || strings.Join(values, "|") != test.want || len(faults) > 0):
			t.Errorf("%q is %q, %v, %v; want %q", test.text, values, ok, faults, test.want)
		case test.fault != "" && (ok || len(faults) == 0 || !strings.Contains(faults[0].String(), test.fault)):
			t.Errorf("%q has the faults %v; want %q", test.text, faults, test.fault)
		}
	}
}
