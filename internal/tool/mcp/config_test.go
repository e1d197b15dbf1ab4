package mcp

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestFaultsOfADefinitionAreToldWithTheirPlaces(t *testing.T) {
	for _, test := range []struct{ fields, fault string }{
		{"", "it.yaml:1:1: command or url is missing"},
		{"command: [sh]\nurl: https://example.com", "it.yaml:1:1: command and url exclude each other"},
		{"command: sh", "it.yaml:2:10: command must be a list of texts"},
		{"command: []", "it.yaml:2:10: command is empty"},
		{"command: [sh, 5]", "it.yaml:2:15: command[1] must be a text: put it in quotes"},
		{"command: [sh, '${THE_KEY}']", "it.yaml:2:15: arguments are seen by every user"},
		{"command: [no-such-program-here]", "it.yaml:2:11: the program \"no-such-program-here\" is not there"},
		{"command: [./it]", "it.yaml:2:11: the program \"./it\" is not there"},
		{"command: [sh]\nenv: {A B: x}", "it.yaml:3:7: \"A B\" is not the name of an environment variable"},
		{"command: [sh]\nenv: {KEY: '${NOT_SET}'}", "it.yaml:3:12: KEY: the environment variable NOT_SET is not set"},
		{"command: [sh]\nheaders: {A: b}", "it.yaml:3:1: unknown field \"headers\""},
		{"url: ftp://example.com", "it.yaml:2:6: url \"ftp://example.com\" must begin with https://"},
		{"url: '${THE_KEY}'", "it.yaml:2:6: url \"${THE_KEY}\" must begin with https://"},
		{"url: https://a:b@example.com", "it.yaml:2:6: url holds a user name or password"},
		{"url: https://example.com\nheaders: {'a b': c}", "it.yaml:3:11: \"a b\" is not the name of a header"},
		{"url: https://example.com\nheaders: {A: \"b\\nc\"}", "it.yaml:3:14: the value of the header A holds a line break"},
		{"url: https://example.com\nenv: {A: b}", "it.yaml:3:1: unknown field \"env\""},
		{"url: https://example.com\ntimeout: 1ms", "it.yaml:3:10: timeout must be from 1s to 1h"},
		{"url: https://example.com\ntools: {x: {class: reed}}", "it.yaml:3:20: class \"reed\" is not known. Did you mean read?"},
		{"url: https://example.com\ntools: {x: {pin: abc}}", "it.yaml:3:18: \"abc\" is not a pin"},
		{"url: https://example.com\ntools: {x: {pinn: read}}", "it.yaml:3:13: unknown field \"pinn\". Did you mean pin?"},
	} {
		r := newRig(t)
		s := r.settings("name: it\n"+test.fields, false)
		_, _ = New(s)
		s.Unknown()
		var found []string
		for _, f := range s.Fields() {
			found = append(found, strings.TrimPrefix(f.String(), r.dir+"/"))
		}
		if len(found) != 1 || !strings.HasPrefix(found[0], test.fault) {
			t.Errorf("%q has the faults %q; want %q", test.fields, found, test.fault)
		}
		if strings.Contains(strings.Join(found, ""), "s3cret") {
			t.Errorf("%q: a fault tells a secret: %q", test.fields, found)
		}
	}
}

func TestDefinitionsAreAccepted(t *testing.T) {
	for _, fields := range []string{
		"command: [sh]",
		"command: [sh, -c, 'cat']\nenv: {KEY: '${THE_KEY}'}\ndir: .\ntimeout: 5m\npinFile: pins.json",
		"url: http://127.0.0.1:1/mcp?key=${THE_KEY}\nheaders: {Authorization: 'Bearer ${THE_KEY}'}",
		"url: https://example.com\ntools: {x: {class: read, pin: 'sha256:" + strings.Repeat("a", 64) + "'}, y: {class: mutation}}",
	} {
		r := newRig(t)
		s := r.settings("name: it\n"+fields, false)
		made, ok := New(s)
		s.Unknown()
		if !ok || len(s.Fields()) > 0 {
			t.Errorf("%q: %v", fields, s.Fields())
			continue
		}
		if _, ok := made.(connector.Starter); !ok {
			t.Error("it is not started when it is loaded")
		}
	}
}
