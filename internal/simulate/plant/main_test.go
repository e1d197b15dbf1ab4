package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A bug is planted at one place, which is still there.
func TestEveryBugHasItsPlace(t *testing.T) {
	for _, b := range known() {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", b.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), b.was); n != 1 {
			t.Errorf("%s: %s has %d places of it, not one", b.name, b.file, n)
		}
	}
}
