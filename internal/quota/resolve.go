package quota

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// longestSecret is in bytes. Keys and tokens are far below it.
const longestSecret = 64 << 10

// resolver puts secrets into the texts of one definition, by the rules of
// connections. Its errors name variables and files, never what is in them.
type resolver struct {
	folder string // of the definition; file:PATH is relative to it
	getenv func(string) string
}

// resolve returns the text with every ${NAME} replaced by the environment
// variable, or, if the text is file:PATH, what is in that file without the end
// of its last line. What comes out is not resolved again.
func (r resolver) resolve(text string) (string, error) {
	if name, isFile := strings.CutPrefix(text, "file:"); isFile {
		return r.fromFile(name)
	}
	return r.fromEnvironment(text)
}

func (r resolver) fromEnvironment(text string) (string, error) {
	reference := regexp.MustCompile(`\$\{[^}]*\}?`)
	var faults []error
	resolved := reference.ReplaceAllStringFunc(text, func(found string) string {
		name, closed := strings.CutSuffix(strings.TrimPrefix(found, "${"), "}")
		if !closed || !isVariable(name) {
			faults = append(faults, errors.New("${ must be followed by the name of an environment variable and }"))
			return ""
		}
		value := r.getenv(name)
		if value == "" {
			faults = append(faults, fmt.Errorf("the environment variable %s is not set", name))
		}
		return value
	})
	if len(faults) > 0 {
		return "", errors.Join(faults...)
	}
	return resolved, nil
}

func isVariable(name string) bool {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name)
}

// fromFile reads a secret from a file. A pipe or a device is refused before it
// could block.
func (r resolver) fromFile(name string) (string, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.folder, path)
	}
	text, err := readRegular(path, longestSecret)
	if err != nil {
		return "", fmt.Errorf("the file %s: %w", name, err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("the file %s is empty", name)
	}
	return value, nil
}

// readRegular reads a file of at most limit bytes. Its errors do not name the
// file.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = file.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, reason(err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it has more than the %d bytes allowed", limit)
	}
	return text, nil
}

// reason is what the system says went wrong, without the path that it adds.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
