package definition

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSecretsComeFromTheEnvironment(t *testing.T) {
	r := resolver{getenv: func(name string) string {
		return map[string]string{"A": "alpha", "B_2": "${A}", "C": "file:x"}[name]
	}}
	for _, test := range []struct{ text, want, fault string }{
		{"plain", "plain", ""},
		{"$A $ {A} 5$", "$A $ {A} 5$", ""},
		{"Bearer ${A}", "Bearer alpha", ""},
		{"${A}${A}-${B_2}", "alphaalpha-${A}", ""},
		{"${C}", "file:x", ""},
		{"${MISSING} ${A} ${GONE}", "", "the environment variable MISSING is not set\nthe environment variable GONE is not set"},
		{"${", "", "${ must be followed by"},
		{"${A", "", "${ must be followed by"},
		{"${}", "", "${ must be followed by"},
		{"${A B} ${A}", "", "${ must be followed by"},
		{"${1}", "", "${ must be followed by"},
	} {
		got, err := r.resolve(test.text)
		switch {
		case test.fault == "" && (err != nil || got != test.want):
			t.Errorf("resolve(%q) = %q, %v; want %q", test.text, got, err, test.want)
		case test.fault != "" && (err == nil || !strings.HasPrefix(err.Error(), test.fault)):
			t.Errorf("resolve(%q) = %v; want %q", test.text, err, test.fault)
		case err != nil && strings.Contains(err.Error(), "alpha"):
			t.Errorf("resolve(%q) tells a secret: %v", test.text, err)
		}
	}
}

// C-35: a key reference is exactly one variable. What is none is not said again,
// because it may be a key.
func TestReferenceIsOneVariableAndNothingElse(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"A": "alpha"}[name] }
	if got, err := FromEnvironment("${A}", getenv); got != "alpha" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := FromEnvironment("${GONE}", getenv); err == nil || err.Error() != "the environment variable GONE is not set" {
		t.Error(err)
	}
	for _, text := range []string{"", "sk-live-1", "lower", "$A", "${A} ", " ${A}", "x${A}", "${A}${A}", "${}", "${1}", "${A", "file:key", "${A}\n"} {
		if name, ok := Reference(text); ok {
			t.Errorf("%q is a reference to %s", text, name)
		}
		if got, err := FromEnvironment(text, getenv); err == nil || got != "" || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"key": "s3cret\n", "windows": "s3cret\r\n", "two": "a\n\n", "variable": "${A}", "empty": "\n",
		"large": strings.Repeat("x", longestSecret+1), "just": strings.Repeat("x", longestSecret),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := resolver{folder: dir, getenv: func(string) string { return "x" }}
	for _, test := range []struct{ text, want, fault string }{
		{"file:key", "s3cret", ""},
		{"file:./key", "s3cret", ""},
		{"file:" + filepath.Join(dir, "key"), "s3cret", ""},
		{"file:windows", "s3cret", ""},
		{"file:two", "a\n", ""},
		{"file:variable", "${A}", ""},
		{"file:just", strings.Repeat("x", longestSecret), ""},
		{"file:missing", "", "read the file missing: no such file or directory"},
		{"file:empty", "", "the file empty is empty"},
		{"file:large", "", "read the file large: it has more than"},
		{"file:pipe", "", "read the file pipe: it is not a file"}, // hangs if it is opened
		{"file:", "", "read the file : it is not a file"},
	} {
		got, err := r.resolve(test.text)
		switch {
		case test.fault == "" && (err != nil || got != test.want):
			t.Errorf("resolve(%q) = %q, %v; want %q", test.text, got, err, test.want)
		case test.fault != "" && (err == nil || err.Error() != test.fault && !strings.HasPrefix(err.Error(), test.fault)):
			t.Errorf("resolve(%q) = %v; want %q", test.text, err, test.fault)
		}
	}
}
