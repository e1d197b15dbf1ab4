package file

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestReadAnswersTextSizeAndTime(t *testing.T) {
	f, dir := open(t)
	put(t, "héllo\n", dir, "a/b.txt")
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "a/b.txt"), at, at); err != nil {
		t.Fatal(err)
	}
	got := do(t, f, callOf(t, "read", "", object{"path": "./a//b.txt"}))
	want := object{"path": "a/b.txt", "text": "héllo\n", "size": 7.0, "modifiedAt": "2026-03-01T12:00:00.005Z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// context 3.8: a missing file and a bad path are logic errors.
func TestReadRefusesWhatIsNotText(t *testing.T) {
	f, dir := open(t)
	put(t, "\xff\xfe", dir, "binary")
	put(t, strings.Repeat("x", largestRead+1), dir, "large")
	put(t, strings.Repeat("x", largestRead), dir, "just")
	put(t, "", dir, "folder/file")
	for path, code := range map[string]string{
		"binary": "not_text", "large": "too_large", "missing": "not_found", "no/where": "not_found",
		"folder": "not_a_file", "folder/file/x": "not_a_folder",
	} {
		checkFault(t, fail(t, f, callOf(t, "read", "", object{"path": path})), pawl.ClassLogic, code, true)
	}
	if got := do(t, f, callOf(t, "read", "", object{"path": "just"})); got["size"] != float64(largestRead) {
		t.Errorf("a file of the largest size has size %v", got["size"])
	}
}

func TestListIsSortedAndHidesTheBookkeeping(t *testing.T) {
	f, dir := open(t)
	put(t, "12345", dir, "b.txt")
	put(t, "", dir, "a/x")
	put(t, "", dir, "sub/.PAWL/x")
	put(t, "", dir, "sub/bad\x01name")
	if err := os.Symlink("b.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []any{nil, "", ".", "./"} {
		got := do(t, f, callOf(t, "list", "", object{"path": path}))
		names := namesOf(t, got)
		if diff := cmp.Diff([]string{"a folder 0", "b.txt file 5", "sub folder 0"}, names); diff != "" || got["more"] != false || got["path"] != "." {
			t.Errorf("list(%v) = %v\n%s", path, got, diff)
		}
	}
	if names := namesOf(t, do(t, f, callOf(t, "list", "", object{"path": "sub/"}))); len(names) != 0 {
		t.Errorf("list shows names that cannot be used: %q", names)
	}
	checkFault(t, fail(t, f, callOf(t, "list", "", object{"path": "b.txt"})), pawl.ClassLogic, "not_a_folder", true)
	checkFault(t, fail(t, f, callOf(t, "list", "", object{"path": "nowhere"})), pawl.ClassLogic, "not_found", true)
	if _, err := f.Call(t.Context(), connector.Call{Method: "list"}); err != nil {
		t.Errorf("list without arguments: %v", err)
	}
}

func namesOf(t *testing.T, list object) []string {
	t.Helper()
	var names []string
	for _, item := range list["items"].([]any) {
		item := item.(object)
		if _, err := time.Parse(pawl.TimeFormat, item["modifiedAt"].(string)); err != nil {
			t.Error(err)
		}
		names = append(names, fmt.Sprint(item["name"], " ", item["type"], " ", item["size"]))
	}
	return names
}

func TestListStopsAtItsLimit(t *testing.T) {
	f, dir := open(t)
	for i := range longestList + 5 {
		put(t, "", dir, "many", fmt.Sprintf("%04d", (i*7)%(longestList+5)))
	}
	got := do(t, f, callOf(t, "list", "", object{"path": "many"}))
	names := namesOf(t, got)
	if len(names) != longestList || got["more"] != true || names[0] != "0000 file 0" || names[longestList-1] != "0999 file 0" {
		t.Errorf("%d items from %s to %s, more %v", len(names), names[0], names[len(names)-1], got["more"])
	}
	if err := os.Remove(filepath.Join(dir, "many/0000")); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := os.Remove(filepath.Join(dir, "many", fmt.Sprintf("%04d", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if got := do(t, f, callOf(t, "list", "", object{"path": "many"})); len(namesOf(t, got)) != longestList || got["more"] != false {
		t.Errorf("exactly as many as the limit: more is %v", got["more"])
	}
}

func TestAppendTakesTextLineOrJSON(t *testing.T) {
	f, dir := open(t)
	steps := []struct {
		args   object
		offset float64
		adds   string
	}{
		{object{"text": "a"}, 0, "a"},
		{object{"content": "b\n"}, 1, "b\n"},
		{object{"line": "c"}, 3, "c\n"},
		{object{"line": ""}, 5, "\n"},
		{object{"json": object{"x": []any{1, "<é>"}}}, 6, "{\"x\":[1,\"\\u003cé\\u003e\"]}\n"},
		{object{"json": nil}, 33, "null\n"},
		{object{"text": ""}, 38, ""},
	}
	all := ""
	for i, step := range steps {
		step.args["path"] = "new/folder/log.txt"
		got := do(t, f, callOf(t, "append", fmt.Sprint("key", i), step.args))
		all += step.adds
		want := object{"path": "new/folder/log.txt", "offset": step.offset, "size": float64(len(all))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("append %v: %s", step.args, diff)
		}
	}
	if got := textOf(t, dir, "new/folder/log.txt"); got != all {
		t.Errorf("the file has %q, want %q", got, all)
	}
}

func TestWriteReplacesTheWholeFile(t *testing.T) {
	f, dir := open(t)
	write := func(key string, args object) object {
		args["path"] = "sub/state.json"
		return do(t, f, callOf(t, "write", key, args))
	}
	if got := write("1", object{"text": "a long text"}); got["size"] != 11.0 || got["path"] != "sub/state.json" {
		t.Errorf("result is %v", got)
	}
	name := filepath.Join(dir, "sub/state.json")
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	write("2", object{"json": []any{1, 2}})
	if got := textOf(t, name); got != "[1,2]\n" {
		t.Errorf("the file has %q", got)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the permissions became %v (%v)", info.Mode(), err)
	}
	write("3", object{"content": ""})
	if got := textOf(t, name); got != "" {
		t.Errorf("the file has %q", got)
	}
}

// context 3.5: nothing was done, and the connector says so.
func TestArgumentsAreChecked(t *testing.T) {
	f, dir := open(t)
	big := strings.Repeat("x", largestText+1)
	tests := []struct{ method, args, msg, hint string }{
		{"read", `[]`, "not an object", ""},
		{"read", `"a"`, "not an object", ""},
		{"read", `{"path":`, "not an object", ""},
		{"read", ``, "path is missing", ""},
		{"read", `null`, "path is missing", ""},
		{"read", `{"path":null}`, "path is missing", ""},
		{"read", `{"path":7}`, "path cannot be a JSON number", ""},
		{"read", `{"path":"a","enc":1}`, `unknown argument "enc"`, "The arguments are path."},
		{"read", `{"Path":"a"}`, `unknown argument "Path"`, "Did you mean path?"},
		{"list", `{"pth":"a"}`, `unknown argument "pth"`, "Did you mean path?"},
		{"append", `{"path":"a"}`, "there are 0 of text, line or json", "Give exactly one"},
		{"append", `{"path":"a","text":"x","line":"y"}`, "there are 2", "Give exactly one"},
		{"append", `{"path":"a","text":"x","content":"x"}`, "there are 2", "Give exactly one"},
		{"append", `{"path":"a","line":"x\ny"}`, "more than one line", "Use text"},
		{"append", `{"path":"a","lin":"x"}`, `unknown argument "lin"`, "Did you mean line?"},
		{"append", `{"path":"a","text":["x"]}`, "text cannot be a JSON array", ""},
		{"append", `{"path":"a","text":"` + big + `"}`, "more than the 4194304 allowed", "Split it"},
		{"write", `{"path":"a","line":"x"}`, `unknown argument "line"`, ""},
		{"write", `{"path":"a"}`, "there are 0 of text or json", ""},
		{"write", `{"path":"a","json":"` + big + `"}`, "more than the 4194304 allowed", ""},
		{"write", `{"path":"a","text":"` + strings.Repeat("x", largestArguments) + `"}`, "the arguments have", "Split it"},
	}
	for _, test := range tests {
		e := fail(t, f, connector.Call{Method: test.method, Key: "k", Args: json.RawMessage(test.args)})
		checkFault(t, e, pawl.ClassLogic, connector.CodeBadArguments, true)
		if !strings.Contains(e.Msg, test.msg) || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("%s(%.60s): %q, hint %q; want %q, %q", test.method, test.args, e.Msg, e.Hint, test.msg, test.hint)
		}
	}
	checkFault(t, fail(t, f, connector.Call{Method: "remove"}), pawl.ClassLogic, "unknown_method", true)
	checkFault(t, fail(t, f, callOf(t, "append", "", object{"path": "a", "text": "x"})), pawl.ClassInternal, "no_key", true)
	if text := textOf(t, dir, "a"); text != "" {
		t.Errorf("a refused call wrote %q", text)
	}
}
