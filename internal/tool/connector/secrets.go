package connector

import (
	"path/filepath"
	"strings"
)

// Secret is a value that came out of the environment or a file. It is held in
// memory only.
type Secret struct {
	Name  string // of the variable or the file, without its folder
	Value string
}

// Secrets are the values that were put into the texts read so far.
func (s *Settings) Secrets() []Secret { return s.secrets }

// getenv reads the environment and notes what came out of it.
func (s *Settings) getenv(name string) string {
	value := s.origin.Getenv(name)
	if value != "" {
		s.secrets = append(s.secrets, Secret{Name: name, Value: value})
	}
	return value
}

// noteFile notes the value of a text that names a file.
func (s *Settings) noteFile(written, value string) {
	if name, isFile := strings.CutPrefix(written, "file:"); isFile {
		s.secrets = append(s.secrets, Secret{Name: filepath.Base(name), Value: value})
	}
}
