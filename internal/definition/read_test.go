package definition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

func TestEveryDocumentIsReadWithItsKindAndPlace(t *testing.T) {
	text := "# prices\nkind: source\nname: a\n---\n---\n# nothing here\n---\r\nkind: provider\r\ndomain: example.com\r\n--- \nkind: \"schedule\"\nname: 5\n"
	documents, err := Read("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range documents {
		got = append(got, fmt.Sprintf("%s %s %s:%d", d.Kind, d.Name, d.File, d.Line))
	}
	want := "source a x.yaml:2|provider  x.yaml:8|schedule  x.yaml:11"
	if strings.Join(got, "|") != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestReadTellsEveryFaultWithItsPlace(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no kind", "name: a", "/kind x:1:1: kind is missing"},
		{"kind of another type", "name: a\nkind: [b]", "/kind x:2:7: kind must be a text"},
		{"list", "- a", " x:1:1: a definition is a list of fields"},
		{"text", "hello", " x:1:1: a definition is a list of fields"},
		{"syntax", "kind: a\nb: [1", " x:2:4: not valid YAML"},
		{"tab", "kind: a\n\tb: c", " x:2:1: not valid YAML"},
		{"name twice", "kind: a\nb: 1\nb: 2", `/b x:3:1: "b" is given twice, first in line 2`},
		{"deep name twice", "kind: a\nb: [{c: 1, c: 2}]", `/b/0/c x:2:12: "c" is given twice`},
		{"alias", "kind: a\nb: &x 1\nc: *x", "/c x:3:4: aliases"},
		{"merge key", "kind: a\nb: &x {d: 1}\nc:\n  <<: *x", "/c/<< x:4:3: merge keys"},
		{"tag", "kind: a\nb: !!str 5", "/b x:2:4: tags"},
		{"tag of code", "kind: a\nb: !!python/object:x []", "/b x:2:4: tags"},
		{"octal", "kind: a\nb: 010", "/b x:2:4: \"010\" is not a number"},
		{"hexadecimal", "kind: a\nb: 0x10", "/b x:2:4: \"0x10\" is not a number"},
		{"infinity", "kind: a\nb: .inf", "/b x:2:4: \".inf\" is not a number"},
		{"huge number", "kind: a\nb: 1.5e999", "/b x:2:4: the number is too large"},
		{"endless number", "kind: a\nb: [1" + strings.Repeat("0", 400) + "]", "/b/0 x:2:5: the number is too large"},
		{"number as name", "kind: a\n5: b", "/5 x:2:1: the name of a field must be a text"},
		{"not UTF-8", "kind: \xff", " x: the file is not UTF-8 text"},
		{"second document", "kind: a\n---\nb: 1\nb: 2", "/b x:4:1: \"b\" is given twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read("x", []byte(test.text))
			e, ok := errors.AsType[*pawl.Error](err)
			if !ok || e.Code != pawl.CodeInvalid {
				t.Fatalf("the error is %v, want one of %s", err, pawl.CodeInvalid)
			}
			for _, field := range e.Fields {
				if strings.HasPrefix(field.Pointer+" "+field.String(), test.want) {
					return
				}
			}
			t.Errorf("the faults are %q, want %q", e.Fields, test.want)
		})
	}
}

func TestDocumentsWithoutFaultsComeAlongWithTheFaultsOfOthers(t *testing.T) {
	documents, err := Read("x", []byte("kind: a\n---\n[\n---\nkind: b\n---\nname: c"))
	e, _ := errors.AsType[*pawl.Error](err)
	if len(documents) != 2 || documents[0].Kind != "a" || documents[1].Kind != "b" || e == nil || len(e.Fields) != 2 {
		t.Errorf("read %v, %v", documents, err)
	}
}

// What would keep a parser busy for minutes, or use up the stack, is refused
// at once.
func TestHostileFilesAreRefusedQuickly(t *testing.T) {
	bomb := "kind: x\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	var names strings.Builder
	for i := range mostNames + 1 {
		fmt.Fprintf(&names, "k%d: v\n", i)
	}
	n := LargestFile - 100
	stairs := ""
	for i := range 200 {
		stairs += strings.Repeat(" ", i) + "a:\n"
	}
	for name, text := range map[string]string{
		"aliases":         bomb,
		"lists":           "kind: x\na: " + strings.Repeat("[", n),
		"mappings":        "kind: x\na: " + strings.Repeat("{a: ", n/4),
		"mappings in row": "kind: x\na: " + strings.Repeat("{a: 1},", n/7),
		"dashes":          strings.Repeat("- ", n/2),
		"questions":       strings.Repeat("? ", n/2),
		"anchors":         "kind: x\na: " + strings.Repeat("&a ", n/3),
		"tags":            "kind: x\na: " + strings.Repeat("!a ", n/3),
		"stairs":          "kind: x\n" + stairs,
		"names":           "kind: x\n" + names.String(),
		"quotes":          "kind: x\na: " + strings.Repeat(`"`, n),
		"directives":      strings.Repeat("%a\n", n/3),
		"documents":       strings.Repeat("---\na\n", n/6),
		"too large":       strings.Repeat("#", LargestFile+1),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := Read("x", []byte(text)); err == nil {
				t.Error("the file is read")
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s to refuse the file", took)
			} else {
				t.Log(took)
			}
		})
	}
}

func TestTooLargeFilesHaveTheirOwnCode(t *testing.T) {
	if _, err := Read("x", make([]byte, LargestFile+1)); pawl.ErrorCode(err) != pawl.CodeTooLarge {
		t.Errorf("the error is %v", err)
	}
	if _, err := ReadJSON(make([]byte, LargestFile+1)); pawl.ErrorCode(err) != pawl.CodeTooLarge {
		t.Errorf("the error of JSON is %v", err)
	}
}

func TestJSONIsReadWithPointers(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"whole", `{"kind":"source","name":"a","b":[1,{"c":null}]}`, ""},
		{"no kind", `{"name":"a"}`, ""},
		{"twice", `{"a":{"b":1,"b":2}}`, `/a/b "b" is given twice`},
		{"twice by escape", `{"a":1,"\u0061":2}`, `/a "a" is given twice`},
		{"huge number", `{"a":[1e999]}`, "/a/0 the number is too large"},
		{"deep", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), " the definition is nested more than 64 levels deep"},
		{"cut", `{"a":`, " the definition is not valid JSON: unexpected end of JSON input, at byte 5"},
		{"more", `{} {}`, " the definition is not valid JSON"},
		{"list", `[]`, " a definition is a JSON object"},
		{"empty", ``, " the definition is not valid JSON"},
		{"many names", "{" + strings.Repeat(`"a":1,`, mostNames) + `"b":1}`, " the definition has more than 5000 fields"},
	} {
		t.Run(test.name, func(t *testing.T) {
			doc, err := ReadJSON([]byte(test.text))
			if test.want == "" {
				if err != nil || doc.Name != "a" || doc.Line != 0 {
					t.Errorf("read %+v, %v", doc, err)
				}
				return
			}
			e, ok := errors.AsType[*pawl.Error](err)
			if !ok || len(e.Fields) == 0 || !strings.HasPrefix(e.Fields[0].Pointer+" "+e.Fields[0].String(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
