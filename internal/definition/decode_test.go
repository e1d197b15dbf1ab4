package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type thing struct {
	Name    string            `json:"name" definition:"required"`
	Mode    string            `json:"mode" definition:"oneof=append|upsert"`
	Count   int               `json:"count"`
	Big     int64             `json:"big"`
	Ratio   float64           `json:"ratio"`
	On      *bool             `json:"on"`
	Input   json.RawMessage   `json:"input"`
	Parts   []pair            `json:"parts"`
	Labels  map[string]string `json:"labels"`
	Key     string            `json:"apiKey" definition:"also=api_key"`
	Either  either            `json:"either"`
	Section *section          `json:"section"`
	Own     string            `json:"-"`
}

type pair struct {
	Name  string `json:"name" definition:"required"`
	Value Scalar `json:"value"`
}

type section struct {
	Limit int `json:"limit" definition:"required"`
}

// either is written as a text or as a section.
type either struct{ text string }

func (e *either) ReadValue(v Value) {
	switch v.Shape() {
	case Text:
		e.text = v.Text()
	case Mapping:
		var s section
		v.Decode(&s)
		e.text = fmt.Sprint("limit ", s.Limit)
	default:
		v.Refuse("either must be a text or a section")
	}
}

func TestDecodeFillsEveryTypeOfField(t *testing.T) {
	text := `kind: thing
name: a
mode: upsert
count: -5
big: 9223372036854775807
ratio: 1.5e3
on: false
input:
  b: [1, 2.50, null, true, "x<y"]
  a:
    z: 1
    y: |
      two
      lines
parts:
- {name: p, value: 5}
- name: q
  value: 2024-01-01
labels: {team: data}
api_key: k
either: {limit: 3}
section: {limit: 7}
`
	documents, err := Read("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got thing
	if faults := documents[0].Decode(&got); len(faults) > 0 {
		t.Fatal(faults)
	}
	no := false
	want := thing{
		Name: "a", Mode: "upsert", Count: -5, Big: 9223372036854775807, Ratio: 1500, On: &no,
		Input: json.RawMessage(`{"a":{"y":"two\nlines\n","z":1},"b":[1,2.50,null,true,"x<y"]}`),
		Parts: []pair{{"p", "5"}, {"q", "2024-01-01"}}, Labels: map[string]string{"team": "data"},
		Key: "k", Either: either{"limit 3"}, Section: &section{7},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(either{})); diff != "" {
		t.Error(diff)
	}
}

// The same definition in YAML and in JSON means the same.
func TestDocumentsAreTheSameInJSON(t *testing.T) {
	documents, err := Read("x", []byte("kind: a\nname: >\n  x\n  y\nb: [1, {c: d}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":[1,{"c":"d"}],"kind":"a","name":"x y\n"}`
	if got := string(documents[0].JSON()); got != want {
		t.Errorf("the document is %s, want %s", got, want)
	}
	again, err := ReadJSON(documents[0].JSON())
	if err != nil || string(again.JSON()) != want {
		t.Errorf("read again it is %s, %v", again.JSON(), err)
	}
}

func TestDecodeTellsEveryFault(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"count: 1", "/name x:1:1: name is missing"},
		{"name:", "/name x:1:1: name is missing"},
		{"name: '  '", "/name x:2:7: name is empty"},
		{"name: 5", "/name x:2:7: name must be a text: put it in quotes"},
		{"name: a\nnaem: b", `/naem x:3:1: unknown field "naem". Did you mean name?`},
		{"name: a\nzzzzzzz: b", `/zzzzzzz x:3:1: unknown field "zzzzzzz". The fields are apiKey, api_key, big, count`},
		{"name: a\nName: b", `/Name x:3:1: unknown field "Name". Did you mean name?`},
		{"name: a\nmode: upsrt", `/mode x:3:7: mode "upsrt" is not known. Did you mean upsert?`},
		{"name: a\nmode: delete", `/mode x:3:7: mode "delete" is not known. It is one of append, upsert.`},
		{"name: a\ncount: many", "/count x:3:8: count must be a whole number"},
		{"name: a\ncount: 1.5", "/count x:3:8: count must be a whole number"},
		{"name: a\nbig: 9223372036854775808", "/big x:3:6: big must be a whole number"},
		{"name: a\non: yes", "/on x:3:5: on must be true or false"},
		{"name: a\nratio: x", "/ratio x:3:8: ratio must be a number"},
		{"name: a\nparts: {}", "/parts x:3:8: parts must be a list"},
		{"name: a\nparts: [5]", "/parts/0 x:3:9: parts[0] must be a mapping"},
		{"name: a\nparts:\n- {value: 5}", "/parts/0/name x:4:4: name is missing"},
		{"name: a\nparts:\n- {name: b, value: [c]}", "/parts/0/value x:4:20: value must be a text, a number"},
		{"name: a\nlabels: {a: 5}", "/labels/a x:3:13: a must be a text"},
		{"name: a\nlabels: {a/b~c: 5}", "/labels/a~1b~0c x:3:17: a/b~c must be a text"},
		{"name: a\napiKey: b\napi_key: c", "/api_key x:4:1: apiKey and api_key mean the same"},
		{"name: a\neither: [b]", "/either x:3:9: either must be a text or a section"},
		{"name: a\neither: {limt: 5}", `/either/limt x:3:10: unknown field "limt". Did you mean limit?`},
		{"name: a\nsection: {}", "/section/limit x:3:10: limit is missing"},
		{"name: a\nOwn: b", `/Own x:3:1: unknown field "Own"`},
	} {
		documents, err := Read("x", []byte("kind: a\n"+test.text))
		if err != nil {
			t.Fatal(test.text, err)
		}
		faults := documents[0].Decode(new(thing))
		found := false
		for _, f := range faults {
			found = found || strings.HasPrefix(f.Pointer+" "+f.String(), test.want)
		}
		if !found {
			t.Errorf("%q has the faults %q, want %q", test.text, faults, test.want)
		}
	}
}

func TestFaultsAreInTheOrderOfTheFileAndToldOnce(t *testing.T) {
	documents, err := Read("x", []byte("kind: a\nname: [b]\ncount: x\nlabels: {c: 5}\n"))
	if err != nil {
		t.Fatal(err)
	}
	faults := documents[0].Check(new(thing))
	faults.Add("/labels/c", "is told already")
	faults.Add("/labels/c/d", "is part of what is told already")
	faults.Add("/count", "is told already")
	faults.Add("/section/limit", "is missing")
	faults.Add("/labels", "are few")
	var got []string
	for _, f := range faults.Fields() {
		got = append(got, f.Pointer)
	}
	want := []string{"/section/limit", "/name", "/count", "/labels", "/labels/c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !faults.At("/labels") || faults.At("/parts") || !faults.Any() {
		t.Error("the faults are not found at their places")
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("kind: a\nname: b\n")
	for i := range mostFaults + 50 {
		fmt.Fprintf(&text, "unknown%d: 1\n", i)
	}
	documents, err := Read("x", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	faults := documents[0].Decode(new(thing))
	if len(faults) != mostFaults+1 || faults[mostFaults].String() != "x: 50 more faults are not shown" {
		t.Errorf("there are %d faults, the last %q", len(faults), faults[len(faults)-1])
	}
}

func TestPlacesAreFoundByPointer(t *testing.T) {
	documents, err := Read("x", []byte("kind: a\nb:\n- c: d\n- e: null\n"))
	if err != nil {
		t.Fatal(err)
	}
	doc := documents[0]
	for pointer, want := range map[string]string{"": "x:1:1", "/b": "x:3:1", "/b/0/c": "x:3:6", "/b/7": "x:3:1", "/b/1/z": "x:4:3"} {
		if got := doc.Place(pointer).String(); got != want {
			t.Errorf("%q is at %s, want %s", pointer, got, want)
		}
	}
	if !doc.Has("/b/0/c") || doc.Has("/b/1/e") || doc.Has("/b/2") || doc.Has("/c") {
		t.Error("Has does not tell what is there")
	}
}
