package connector

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/google/go-cmp/cmp"
)

func settingsOf(t *testing.T, text string) *Settings {
	t.Helper()
	parsed, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	env := Env{Getenv: func(name string) string {
		return map[string]string{"KEY": "alpha-1", "OTHER": "beta-22"}[name]
	}}
	return NewSettings(Origin{File: "x.yaml", Line: 10, Env: env}, parsed.Docs[0].Body.(*ast.MappingNode))
}

func checkFaults(t *testing.T, s *Settings, want ...string) {
	t.Helper()
	s.Unread()
	var got []string
	for _, fault := range s.Faults() {
		got = append(got, strings.TrimPrefix(fault.String(), "x.yaml:"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSectionsHaveFieldsFaultsAndSecretsOfTheirOwn(t *testing.T) {
	s := settingsOf(t, "top: {a: '${KEY}', b: 1, zzzzzz: x}\nmany:\n  one: {a: '${OTHER}'}\n  two: [x]\nnone: text\n")
	var read []string
	s.Section("top", func(in *Settings) {
		a, _ := in.Optional("a")
		_, ok := in.Optional("b")
		_, absent := in.Optional("c")
		if ok || absent {
			t.Error("a number or nothing was read as a text")
		}
		read = append(read, a.Value)
	})
	s.Sections("many", func(name Field, in *Settings) {
		a, _ := in.Optional("a")
		read = append(read, name.Name+a.Value)
	})
	s.Sections("none", func(Field, *Settings) { t.Error("a text was read as sections") })
	s.Section("absent", func(*Settings) { t.Error("what is absent was read") })
	if diff := cmp.Diff([]string{"alpha-1", "onebeta-22"}, read); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Secret{{"KEY", "alpha-1"}, {"OTHER", "beta-22"}}, s.Secrets()); diff != "" {
		t.Error(diff)
	}
	checkFaults(t, s,
		"11:23: b must be a text",
		`11:26: unknown field "zzzzzz". The fields are a, b, c.`,
		"14:8: two must have fields of its own",
		"15:7: none must map names to sections",
	)
}

func TestSecretMappingPutsSecretsIn(t *testing.T) {
	s := settingsOf(t, "headers: {A: 'x ${KEY}', B: 1, C: '${NONE}'}\nwrong: x\n")
	fields := s.SecretMapping("headers")
	if len(fields) != 1 || fields[0].Name != "A" || fields[0].Value != "x alpha-1" || fields[0].Written != "x ${KEY}" {
		t.Errorf("%+v", fields)
	}
	if s.SecretMapping("absent") != nil || s.SecretMapping("wrong") != nil {
		t.Error("what is absent or wrong was read")
	}
	checkFaults(t, s, "11:29: B must be a text", "11:35: C: the environment variable NONE is not set", "12:8: wrong must map names to texts")
}

func TestMeasuresHaveUnitsAndLimits(t *testing.T) {
	s := settingsOf(t, "a: 1m30s\nb: 2h\nc: 30\nd: soon\ne: [1s]\n")
	for name, want := range map[string]time.Duration{"a": 90 * time.Second, "b": time.Second, "c": time.Second, "d": time.Second, "e": time.Second, "absent": time.Second} {
		if got := s.Duration(name, time.Second, time.Second, time.Hour); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	checkFaults(t, s, "12:4: b must be from 1s to 1h0m0s", `13:4: c "30" is not a length of time such as 30s or 2m`,
		`14:4: d "soon" is not a length of time such as 30s or 2m`, "15:4: e must be a text")

	s = settingsOf(t, "a: 4MiB\nb: 1000\nc: 5 KiB\nd: 0\ne: 99999999999999999999GiB\nf: 4 parsecs\ng: MiB\nh: -1\n")
	for name, want := range map[string]int64{"a": 4 << 20, "b": 1000, "c": 5 << 10, "d": 7, "e": 7, "f": 7, "g": 7, "h": 7, "absent": 7} {
		if got := s.Size(name, 7, 4<<20); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	checkFaults(t, s, "14:4: d must be from 1 to 4194304 bytes", "15:4: e must be from 1 to 4194304 bytes", `16:4: f "4 parsecs" is not a size such as 512KiB or 4MiB`,
		`17:4: g "MiB" is not a size such as 512KiB or 4MiB`, `18:4: h "-1" is not a size such as 512KiB or 4MiB`)
}

func TestNameIsReadWithoutFaults(t *testing.T) {
	for text, want := range map[string]string{"name: shop\n": "shop", "name: 'shop'\n": "shop", "name: [x]\n": "", "type: x\n": ""} {
		s := settingsOf(t, text)
		if got := s.Name(); got != want || len(s.Faults()) != 0 {
			t.Errorf("%q: %q, %v", text, got, s.Faults())
		}
	}
}
