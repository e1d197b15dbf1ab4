package definition

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/internal/redact"
)

// longestSecret is in bytes. Keys and certificates are far below it.
const longestSecret = 64 << 10

// Secret is a text in which every ${NAME} stands for an environment variable,
// or one that is file:PATH and stands for what is in that file, without the end
// of its last line. What comes out is not resolved again, so a value can hold
// anything. It is never empty.
type Secret struct {
	Written string // as it is in the file; messages show this one
	Value   string
	Pointer string // where it is; empty if it is not there
}

// ReadValue resolves the text. Faults name variables and files, never what is
// in them.
func (s *Secret) ReadValue(v Value) {
	if !v.decoder.shaped(v.node, Text, v.pointer) {
		return
	}
	written := v.Text()
	if strings.TrimSpace(written) == "" {
		v.Refuse("%s is empty", last(v.pointer))
		return
	}
	r := v.decoder.reading
	value, err := resolver{folder: r.Folder(), getenv: r.getenv}.resolve(written)
	if err != nil {
		v.Refuse("%s: %s", last(v.pointer), strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	if name, isFile := strings.CutPrefix(written, "file:"); isFile {
		r.secrets = append(r.secrets, redact.Secret{Name: filepath.Base(name), Value: value})
	}
	*s = Secret{Written: written, Value: value, Pointer: v.pointer}
}

// Secrets are texts by name, in the order of the file.
type Secrets []NamedSecret

// NamedSecret is one of them.
type NamedSecret struct {
	Name string
	Secret
}

// ReadValue resolves the texts.
func (s *Secrets) ReadValue(v Value) {
	if !v.decoder.shaped(v.node, Mapping, v.pointer) {
		return
	}
	for _, field := range v.node.named {
		found := NamedSecret{Name: field.name}
		found.ReadValue(Value{node: field.value, pointer: v.pointer + Pointer(field.name), decoder: v.decoder})
		if found.Pointer != "" {
			*s = append(*s, found)
		}
	}
}

// getenv reads the environment and notes what came out of it.
func (r *Reading) getenv(name string) string {
	if r.Getenv == nil {
		return ""
	}
	value := r.Getenv(name)
	if value != "" {
		r.secrets = append(r.secrets, redact.Secret{Name: name, Value: value})
	}
	return value
}

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

// Resolve is what a text stands for that may name variables and files, as in a
// Secret; files are relative to the folder. Its errors name variables and files,
// never what is in them.
func Resolve(text, folder string, getenv func(string) string) (string, error) {
	return resolver{folder: folder, getenv: getenv}.resolve(text)
}

func reference() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`) }

// resolver puts secrets into the texts of one definition. Its errors name
// variables and files, never what is in them.
type resolver struct {
	folder string // of the definition; file:PATH is relative to it
	getenv func(string) string
}

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

func (r resolver) fromFile(name string) (string, error) {
	text, err := readRegular(Within(r.folder, name), longestSecret)
	if err != nil {
		return "", fmt.Errorf("read the file %s: %w", name, err)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if secret == "" {
		return "", fmt.Errorf("the file %s is empty", name)
	}
	return secret, nil
}

// Within makes a path absolute, or one below a folder.
func Within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// errNoFile is what a folder, a pipe or a device is.
var errNoFile = errors.New("it is not a file")

// readRegular reads a file of at most limit bytes. A pipe or a device is
// refused before it could block. Its errors do not name the file.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
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

// ResolveVariables is a text with what its references, such as ${NAME}, stand for. Its
// errors name the variables, never what is in them.
func ResolveVariables(text string, getenv func(string) string) (string, error) {
	return resolver{getenv: getenv}.fromEnvironment(text)
}
