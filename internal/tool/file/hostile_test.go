package file

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// everyMethod makes the call of each method for a path.
func everyMethod(t *testing.T, path string) []connector.Call {
	t.Helper()
	return []connector.Call{
		callOf(t, "read", "", object{"path": path}),
		callOf(t, "list", "", object{"path": path}),
		callOf(t, "append", "a:"+path, object{"path": path, "text": "evil"}),
		callOf(t, "write", "w:"+path, object{"path": path, "text": "evil"}),
	}
}

// context 3.8: a bad path is a logic error.
func TestHostilePathsAreRefused(t *testing.T) {
	f, dir := open(t)
	put(t, "secret", dir, "../outside.txt")
	put(t, "", dir, "sub/file")
	outside := filepath.Join(dir, "../outside.txt")
	for _, path := range []string{
		"../outside.txt", "sub/../../outside.txt", "sub/../sub/file", "..", "../", "sub/..", "./../outside.txt",
		outside, "/etc/passwd", "//etc/passwd", "/",
		"a\x00b", "a\nb", "a\tb", "a\x7fb", "a\u0085b", "a\u202eb", "a\u2066b", "a\u2028b",
		`..\outside.txt`, `C:\x`, `sub\file`,
		".pawl", ".pawl/done", ".PAWL/done", ".Pawl", "./.pawl/lock", ".pawl/", "sub/.pawl/x", ".pa\u200cwl/done", ".pawl\ufe0f/x", ".pawl. /x",
		strings.Repeat("x", longestName+1), strings.Repeat("x/", longestPath), strings.Repeat("d/", deepest) + "x",
	} {
		for _, call := range everyMethod(t, path) {
			checkFault(t, fail(t, f, call), pawl.ClassLogic, "bad_path", true)
		}
	}
	if got := textOf(t, outside); got != "secret" {
		t.Errorf("the file outside has %q", got)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 { // .pawl and sub
		t.Errorf("the folder has %v, %v", names, err)
	}
}

func TestHarmlessNamesAreNotRefused(t *testing.T) {
	f, dir := open(t)
	for _, path := range []string{"...", ".hidden", "a b", "~", "-rf", "$(x)", "نمی\u200cخواهم", "日本.txt", ".pawlx", "x.pawl", strings.Repeat("y", longestName)} {
		do(t, f, callOf(t, "append", "a:"+path, object{"path": path, "text": "x"}))
		do(t, f, callOf(t, "write", "w:"+path, object{"path": path, "text": "y"}))
		if got := do(t, f, callOf(t, "read", "", object{"path": path})); got["text"] != "y" || textOf(t, dir, path) != "y" {
			t.Errorf("read(%q) = %v", path, got)
		}
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	f, dir := open(t)
	put(t, "secret", dir, "../outside.txt")
	put(t, "inside", dir, "real/file")
	for link, target := range map[string]string{
		"up": "..", "abs": "/etc", "passwd": "/etc/passwd", "out.txt": "../outside.txt", "books": ".pawl",
		"in": "real", "in.txt": "real/file", "loop": "loop", "dangling": "../new.txt",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"up", "up/outside.txt", "up/new.txt", "abs", "abs/passwd", "passwd", "out.txt", "books", "books/done", "books/calls/x",
		"in", "in/file", "in/new/deep.txt", "in.txt", "loop", "loop/x", "dangling",
	} {
		for _, call := range everyMethod(t, path) {
			e := fail(t, f, call)
			checkFault(t, e, pawl.ClassLogic, "bad_path", true)
			if !strings.HasPrefix(e.Hint, "Links are not followed") {
				t.Errorf("%s(%s): %v, hint %q", call.Method, path, e, e.Hint)
			}
		}
	}
	if textOf(t, dir, "../outside.txt") != "secret" || textOf(t, dir, "real/file") != "inside" {
		t.Error("a file was changed through a link")
	}
	for _, path := range []string{"../new.txt", "real/new"} {
		if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
			t.Errorf("%s was made through a link", path)
		}
	}
}

// The test hangs if one of them blocks.
func TestSpecialFilesAreRefusedWithoutBlocking(t *testing.T) {
	f, dir := open(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the path of a socket is limited to about a hundred bytes
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	for _, path := range []string{"pipe", "socket"} {
		for _, call := range everyMethod(t, path) {
			checkFault(t, fail(t, f, call), pawl.ClassLogic, "bad_path", true)
		}
	}
	if names := namesOf(t, do(t, f, callOf(t, "list", "", nil))); len(names) != 0 {
		t.Errorf("list shows %q", names)
	}
}
