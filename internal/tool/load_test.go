package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// folder makes a folder with files of these names and texts.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func noEnvironment(string) string { return "" }

const outbox = "kind: connection\nname: outbox\ntype: file\nroot: ./out\n"

func TestLoadMakesConnections(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml": "# two of them\n" + outbox + "policy: {append: allow, read: deny}\n---\n\n---\n# empty\n---\nkind: connection\nname: In-box_2\ntype: file\ndir: sub/in\n",
		"b.yml":  "kind: executor\nname: graphs\nwhatever: {x: [1, 2]}\n---\nkind: provider\nname: model\nkey: ${MODEL_KEY}\n",
		"c.yaml": "%YAML 1.2\n--- {kind: connection, name: flow, type: file, \"folder\": 'f'}\n",
		"d.yaml": "\ufeffkind: connection\r\nname: windows\r\ntype: file\r\npath: |\r\n  w\r\n",

		"empty.yaml":       "",
		"notes.txt":        "kind: nonsense",
		".#a.yaml":         "kind: nonsense",
		"deeper/x.yaml":    "kind: nonsense",
		"folder.yaml/file": "",
	})
	set, err := Load(dir, Env{Getenv: noEnvironment})
	if err != nil {
		t.Fatal(err, fieldsOf(err))
	}
	if diff := cmp.Diff([]string{"In-box_2", "flow", "outbox", "windows"}, set.Names()); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"out", "sub/in", "f", "w"} { // relative to the definition
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("root %s: %v, %v", name, info, err)
		}
	}
	want := Info{Name: "outbox", Type: "file", File: filepath.Join(dir, "a.yaml"), Methods: []MethodInfo{
		{Method{Name: "append", Mutation: true, Reconciles: true}, Allow},
		{Method{Name: "list"}, Allow},
		{Method{Name: "read"}, Deny},
		{Method{Name: "write", Mutation: true, Reconciles: true}, Ask},
	}}
	if diff := cmp.Diff(want, set.Describe()[2]); diff != "" {
		t.Error(diff)
	}
}

func TestLoadedConnectionWorks(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": outbox})
	set, err := Load(dir, Env{Getenv: noEnvironment})
	if err != nil {
		t.Fatal(err)
	}
	target, err := set.Lookup("outbox", "append")
	if err != nil || target.Name != "outbox" || !target.Method.Mutation || target.Policy != Ask {
		t.Fatalf("Lookup = %v, %v", target, err)
	}
	call := Call{Method: "append", Key: "key", Args: []byte(`{"path":"log","line":"hello"}`)}
	result, err := target.Connection.Call(t.Context(), call)
	if err != nil || string(result) != `{"path":"log","offset":0,"size":6}` {
		t.Errorf("Call = %s, %v", result, err)
	}
	answer, err := target.Connection.Reconcile(t.Context(), call)
	if err != nil || answer.State != Applied || string(answer.Result) != string(result) {
		t.Errorf("Reconcile = %v, %v", answer, err)
	}
}

func TestLoadWithoutAFolderIsEmpty(t *testing.T) {
	set, err := Load("", Env{Getenv: noEnvironment})
	if err != nil || len(set.Names()) != 0 || len(set.Describe()) != 0 {
		t.Fatalf("Load = %v, %v", set, err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing"), Env{Getenv: noEnvironment}); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a missing folder: %v", err)
	}
}

// fieldsOf are the faults of an invalid definition.
func fieldsOf(err error) []string {
	var messages []string
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeInvalid {
		for _, field := range e.Fields {
			messages = append(messages, field.String())
		}
	}
	return messages
}

func TestLoadTellsThePlaceOfAFault(t *testing.T) {
	head := "kind: connection\nname: x\ntype: file\n"
	tests := []struct {
		name, text string
		faults     []string // each is PLACE: PART of the message
	}{
		{"unknown field", head + "root: r\n  \npollicy: {}\n", []string{`6:1: unknown field "pollicy". Did you mean policy?`}},
		{"unknown field far from all", head + "root: r\nzzzzzz: 1\n", []string{`5:1: unknown field "zzzzzz". The fields are dir, folder, kind, name, path, policy, root, type.`}},
		{"no kind", "name: x\n", []string{`1:1: kind is missing`}},
		{"no kind in a later document", outbox + "---\n# a\nname: x\n", []string{`7:1: kind is missing`}},
		{"wrong kind", "kind: connektion\n", []string{`1:7: kind "connektion" does not belong here. Did you mean connection?`}},
		{"kind of another folder", "kind: workflow\n", []string{`1:7: kind "workflow" does not belong here. The kinds`}},
		{"kind that is not a text", "kind: [connection]\n", []string{`1:7: kind must be a text`}},
		{"no name and no type", "kind: connection\n", []string{`1:1: name is missing`, `1:1: type is missing`}},
		{"empty name", "kind: connection\nname: \"\"\ntype: file\nroot: r\n", []string{`2:7: name is empty`}},
		{"null name", "kind: connection\nname:\ntype: file\nroot: r\n", []string{`1:1: name is missing`}},
		{"number as a name", "kind: connection\nname: 12\ntype: file\nroot: r\n", []string{`2:7: name must be a text`}},
		{"bad name", "kind: connection\nname: out box\ntype: file\nroot: r\n", []string{`2:7: the name "out box" must begin with a letter`}},
		{"name of JavaScript", "kind: connection\nname: then\ntype: file\nroot: r\n", []string{`2:7: the name "then" has a meaning`}},
		{"unknown type", "kind: connection\nname: x\ntype: flie\nroot: r\n", []string{`3:7: unknown type "flie". Did you mean file?`}},
		{"no root", head, []string{`1:1: root is missing`}},
		{"root twice", head + "root: a\nfolder: b\n", []string{`5:1: root and folder mean the same`}},
		{"root is a list", head + "root: [a]\n", []string{`4:7: root must be a text`}},
		{"root is an alias", head + "policy: &a {}\nroot: *a\n", []string{`5:7: aliases (*name) are not supported: write the value out`}},
		{"root is a file", head + "root: ./x.yaml\n", []string{`4:7: the folder "./x.yaml" cannot be used: not a directory`}},
		{"root needs a variable", head + "root: ${DATA}/${MORE}\n", []string{`4:7: root: the environment variable DATA is not set; the environment variable MORE is not set`}},
		{"root needs a file", head + "root: file:nowhere\n", []string{`4:7: root: read the file nowhere: no such file`}},
		{"unknown method", head + "root: r\npolicy: {apend: allow}\n", []string{`5:10: there is no method "apend". Did you mean append?`}},
		{"unknown policy", head + "root: r\npolicy:\n  append: alow\n", []string{`6:11: unknown policy "alow". Did you mean allow?`}},
		{"policy is not a text", head + "root: r\npolicy: {append: true}\n", []string{`5:18: append must be a text`}},
		{"policy is not a mapping", head + "root: r\npolicy: allow\n", []string{`5:9: policy must be a mapping of names and values`}},
		{"field twice", head + "root: a\nroot: b\n", []string{`5:1: "root" is given twice, first in line 4`}},
		{"not a mapping", "- a\n", []string{`1:1: a definition is a list of fields`}},
		{"text", "---\n\nhello\n", []string{`3:1: a definition is a list of fields`}},
		{"not YAML", "kind: {\n", []string{`1:7:`}},
		{"not YAML, later", outbox + "---\nkind: [\n", []string{`6:7:`}},
		{"not UTF-8", "kind: \xff\n", []string{` the file is not UTF-8`}},
		{"too large", "#" + strings.Repeat("x", definition.LargestFile), []string{` the file cannot be read: it has more than`}},
		{"many faults", "kind: connection\nname: 1x\ntype: file\nrot: r\npolicy: {read: maybe, delete: ask}\n", []string{
			`1:1: root is missing`, `2:7: the name "1x"`, `4:1: unknown field "rot". Did you mean root?`, `5:16: unknown policy "maybe"`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"x.yaml": test.text})
			_, err := Load(dir, Env{Getenv: noEnvironment})
			got := fieldsOf(err)
			if len(got) != len(test.faults) {
				t.Fatalf("%v with the faults\n%s", err, strings.Join(got, "\n"))
			}
			for i, want := range test.faults {
				if want = filepath.Join(dir, "x.yaml") + ":" + want; !strings.HasPrefix(got[i], want) {
					t.Errorf("fault %q\nwant  %q", got[i], want)
				}
			}
		})
	}
}

func TestLoadTellsTheFaultsOfAllFiles(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml": outbox + "x: 1\n",
		"b.yaml": "kind: nothing\n---\n" + outbox,
		"c.yml":  outbox,
	})
	_, err := Load(dir, Env{Getenv: noEnvironment})
	at := func(file, rest string) string { return filepath.Join(dir, file) + ":" + rest }
	want := []string{
		at("a.yaml", `5:1: unknown field "x". The fields are dir, folder, kind, name, path, policy, root, type.`),
		at("b.yaml", `1:7: kind "nothing" does not belong here. The kinds of this folder are connection, executor, prices, provider, source, schedule.`),
		at("b.yaml", "4:7: the connection outbox is already defined at "+at("a.yaml", "2:7")),
		at("c.yml", "2:7: the connection outbox is already defined at "+at("a.yaml", "2:7")),
	}
	if diff := cmp.Diff(want, fieldsOf(err)); diff != "" {
		t.Error(diff)
	}
}

// What a secret is must not be in what is told about it.
func TestLoadResolvesSecrets(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml":   "kind: connection\nname: a\ntype: file\nroot: ${BASE}/in-${PART}\n",
		"b.yaml":   "kind: connection\nname: b\ntype: file\nroot: file:secret/root\n",
		"x/faulty": "",

		"secret/root": "from-file\n",
	})
	environment := func(name string) string { return map[string]string{"BASE": "base", "PART": "${BASE}"}[name] }
	if _, err := Load(dir, Env{Getenv: environment}); err != nil {
		t.Fatal(err, fieldsOf(err))
	}
	for _, name := range []string{"base/in-${BASE}", "from-file"} { // a value is not resolved again
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			t.Errorf("root %s: %v, %v", name, info, err)
		}
	}
	_, err := Load(dir, Env{Getenv: func(string) string { return "x/faulty" }})
	if all := fmt.Sprint(err, fieldsOf(err)); !errors.Is(err, pawl.ErrInvalid) || strings.Contains(all, "faulty") || !strings.Contains(all, "${BASE}/in-${PART}") {
		t.Errorf("the fault tells the value, or not the text: %s", all)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(outbox)
	f.Add("kind: connection\n---\n- &a [*a]\n--- |\n x\n...\n? {a: b}\n: c\n<<: *a")
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := definition.Read("x.yaml", []byte(text))
		l := loading{env: Env{Getenv: noEnvironment, CheckOnly: true}, members: map[string]member{}, places: map[string]pawl.Place{}}
		for _, doc := range documents {
			l.definition(doc)
		}
		faults := append(definition.FieldsOf(err), l.faults...)
		for _, fault := range faults {
			if !strings.HasPrefix(fault.String(), "x.yaml:") {
				t.Errorf("a fault without its place: %q", fault.String())
			}
		}
	})
}
