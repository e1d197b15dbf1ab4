package connector

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// longestSecret is in bytes. Keys and certificates are far below it.
const longestSecret = 64 << 10

// Reference is the name in a text that is exactly one reference to an
// environment variable: ${NAME}.
func Reference(text string) (name string, ok bool) {
	found := reference().FindStringSubmatchIndex(text)
	if found == nil || found[0] != 0 || found[1] != len(text) {
		return "", false
	}
	return text[found[2]:found[3]], true
}

// FromEnvironment is what a text stands for that is exactly one reference. Its
// errors name the variable, never what is in it, and never quote a text that is
// no reference: that may be the secret itself.
func FromEnvironment(text string, getenv func(string) string) (string, error) {
	if _, ok := Reference(text); !ok {
		return "", errors.New("it is not a reference such as ${NAME}")
	}
	return resolver{getenv: getenv}.fromEnvironment(text)
}

func reference() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`) }

// resolver puts secrets into the texts of one definition. Its errors name
// variables and files, never what is in them.
type resolver struct {
	folder string // of the definition; file:PATH is relative to it
	getenv func(string) string
}

// resolve returns the text with every ${NAME} replaced by the environment
// variable, or, if the text is file:PATH, what is in that file without the
// end of its last line. What comes out is not resolved again, so a value can
// hold anything.
func (r resolver) resolve(text string) (string, error) {
	if name, isFile := strings.CutPrefix(text, "file:"); isFile {
		return r.fromFile(name)
	}
	return r.fromEnvironment(text)
}

func (r resolver) fromEnvironment(text string) (string, error) {
	reference := reference()
	var faults []error
	var out strings.Builder
	rest := text
	for {
		at := strings.Index(rest, "${")
		if at < 0 {
			out.WriteString(rest)
			return out.String(), errors.Join(faults...)
		}
		out.WriteString(rest[:at])
		rest = rest[at:]
		found := reference.FindStringSubmatchIndex(rest)
		if found == nil || found[0] != 0 {
			return "", errors.New("${ must be followed by the name of an environment variable and }")
		}
		name := rest[found[2]:found[3]]
		value := r.getenv(name)
		if value == "" {
			faults = append(faults, fmt.Errorf("the environment variable %s is not set", name))
		}
		out.WriteString(value)
		rest = rest[found[1]:]
	}
}

// fromFile reads a secret from a file. A pipe or a device is refused before
// it could block.
func (r resolver) fromFile(name string) (string, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.folder, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read the file %s: %w", name, Reason(err))
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", name)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the file %s: %w", name, Reason(err))
	}
	defer func() { _ = file.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(file, longestSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the file %s: %w", name, Reason(err))
	case len(text) > longestSecret:
		return "", fmt.Errorf("the file %s has more than the %d bytes allowed", name, longestSecret)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if secret == "" {
		return "", fmt.Errorf("the file %s is empty", name)
	}
	return secret, nil
}
