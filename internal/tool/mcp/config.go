package mcp

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// config is what a definition says.
type config struct {
	name    string
	timeout time.Duration // of one call
	pinFile string
	tools   map[string]toolConfig

	// Of a program that is started.
	command []string // empty for a server on the network
	env     []string // NAME=value
	dir     string

	// Of a server on the network.
	url     string
	headers http.Header
}

// toolConfig is what the operator says about a tool.
type toolConfig struct {
	class string // classRead, classMutation or empty
	pin   string // a hash, or empty
}

// The classes that a definition can name.
const (
	classRead     = "read"
	classMutation = "mutation"
)

// readConfig reads a definition:
//
//	command: [node, server.js]      # a program; or url: https://...
//	env: {API_KEY: "${API_KEY}"}    # all that it gets, beside PATH and HOME
//	dir: ./data                     # where it runs; default: the definition's folder
//	headers: {Authorization: "Bearer ${TOKEN}"}   # with url
//	timeout: 60s
//	tools: {send: {class: mutation, pin: "sha256:..."}}
//	pinFile: ./pins.json
func readConfig(s *connector.Settings) (config, bool) {
	cfg := config{name: s.Name(), tools: map[string]toolConfig{}}
	ok := readPlace(s, &cfg)
	cfg.timeout = s.Duration("timeout", time.Minute, time.Second, time.Hour)
	s.Sections("tools", func(name connector.Field, section *connector.Settings) {
		cfg.tools[name.Name] = readTool(section)
	})
	cfg.pinFile = filepath.Join(s.Folder(), ".pawl-pins", cfg.name+".json")
	if file, given := s.Optional("pinFile"); given {
		cfg.pinFile = within(s.Folder(), file.Value)
	}
	return cfg, ok
}

// readPlace reads where the server is.
func readPlace(s *connector.Settings, cfg *config) bool {
	switch program, network := s.Has("command"), s.Has("url"); {
	case program && network:
		s.RefuseWhole("command and url exclude each other; keep one of them")
		return false
	case network:
		return readNetwork(s, cfg)
	case program:
		return readProgram(s, cfg)
	}
	s.RefuseWhole("command or url is missing")
	return false
}

func readProgram(s *connector.Settings, cfg *config) bool {
	command, ok := s.List("command")
	for _, part := range command {
		if strings.Contains(part.Value, "${") {
			s.Refuse(part, "arguments are seen by every user of the machine; put secrets into env")
			ok = false
		}
		cfg.command = append(cfg.command, part.Value)
	}
	for _, variable := range s.SecretMapping("env") {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(variable.Name) {
			s.RefuseName(variable, "%s is not the name of an environment variable", connector.Quote(variable.Name))
			ok = false
		}
		if strings.ContainsRune(variable.Value, 0) {
			s.Refuse(variable, "%s holds a character that no environment variable can hold", variable.Name)
			ok = false
		}
		cfg.env = append(cfg.env, variable.Name+"="+variable.Value)
	}
	cfg.dir = s.Folder()
	if dir, given := s.Optional("dir"); given {
		cfg.dir = within(s.Folder(), dir.Value)
	}
	if ok && !s.Env().CheckOnly { // it need not be installed where definitions are checked
		ok = findProgram(s, cfg, command[0])
	}
	return ok
}

// findProgram makes the path of the program absolute.
func findProgram(s *connector.Settings, cfg *config, program connector.Field) bool {
	name := program.Value
	if strings.ContainsRune(name, filepath.Separator) {
		name = within(cfg.dir, name)
	}
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		s.Refuse(program, "the program %s is not there, or is not a program; install it, or correct command", connector.Quote(program.Value))
		return false
	}
	cfg.command[0] = found
	return true
}

func readNetwork(s *connector.Settings, cfg *config) bool {
	field, ok := s.Optional("url")
	if ok {
		u, err := url.Parse(field.Value)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			s.Refuse(field, "url %s must begin with https:// or http:// and name a host", connector.Quote(field.Written))
			ok = false
		case u.User != nil:
			s.Refuse(field, "url holds a user name or password; put credentials into headers")
			ok = false
		}
		cfg.url = field.Value
	}
	cfg.headers = http.Header{}
	for _, header := range s.SecretMapping("headers") {
		if !regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(header.Name) {
			s.RefuseName(header, "%s is not the name of a header", connector.Quote(header.Name))
			ok = false
		}
		if strings.ContainsFunc(header.Value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
			s.Refuse(header, "the value of %s holds a line break or another control character", header.Name)
			ok = false
		}
		cfg.headers.Set(header.Name, header.Value)
	}
	return ok
}

func readTool(s *connector.Settings) (t toolConfig) {
	if s.Has("class") {
		if class, ok := s.Plain("class"); ok {
			t.class = class.Value
			if t.class != classRead && t.class != classMutation {
				known := []string{classRead, classMutation}
				s.Refuse(class, "unknown class %s. %s", connector.Quote(class.Value), connector.Suggest(class.Value, known, "The classes are mutation, read."))
			}
		}
	}
	if s.Has("pin") {
		if pin, ok := s.Plain("pin"); ok {
			t.pin = pin.Value
			if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(t.pin) {
				s.Refuse(pin, "%s is not a pin: sha256: and 64 digits, as pawl connections pin tells it", connector.Quote(pin.Value))
			}
		}
	}
	return t
}

// within makes a path absolute or relative to a folder.
func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
