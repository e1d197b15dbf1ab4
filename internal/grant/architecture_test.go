package grant

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// C-67, C-70: no other package of the product knows what a scope looks like.
// Tests may speak as a user would, who writes scopes.
func TestNobodyElseKnowsScopes(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(root, "internal", "grant")
	files := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path == here || entry.Name() == ".git" || entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		source, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(source), strings.TrimSuffix(scopePrefix, ":")) {
			name, _ := filepath.Rel(root, path)
			t.Errorf("%s spells out a scope; use internal/grant", name)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}
