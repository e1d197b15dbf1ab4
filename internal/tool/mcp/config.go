package mcp

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	document "github.com/pawlrun/pawl/internal/definition"
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
	Class string `json:"class" definition:"oneof=mutation|read"`
	Pin   string `json:"pin" pattern:"^sha256:[0-9a-f]{64}$" is:"a pin: sha256: and 64 digits, as pawl connections pin tells it"`
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
	var written struct {
		Command []string              `json:"command" definition:"nonempty"`
		URL     document.Secret       `json:"url"`
		Timeout time.Duration         `json:"timeout" definition:"default=1m,min=1s,max=1h"`
		Tools   map[string]toolConfig `json:"tools"`
		PinFile document.Secret       `json:"pinFile"`
	}
	s.Read(&written)
	cfg := config{name: s.Name, timeout: written.Timeout, tools: written.Tools}
	cfg.pinFile = filepath.Join(s.Folder(), ".pawl-pins", cfg.name+".json")
	if file := written.PinFile.Value; file != "" {
		cfg.pinFile = document.Within(s.Folder(), file)
	}
	switch program, network := s.Has("/command"), s.Has("/url"); {
	case program && network:
		s.Add("", "command and url exclude each other; keep one of them")
	case network:
		readNetwork(s, &cfg, written.URL)
	case program:
		readProgram(s, &cfg, written.Command)
	default:
		s.Add("", "command or url is missing")
	}
	return cfg, s.OK()
}

func readProgram(s *connector.Settings, cfg *config, command []string) {
	var written struct {
		Env document.Secrets `json:"env"`
		Dir document.Secret  `json:"dir"`
	}
	s.Read(&written)
	for i, part := range command {
		if strings.Contains(part, "${") {
			s.Add(document.Pointer("command", i), "arguments are seen by every user of the machine; put secrets into env")
		}
	}
	cfg.command = command
	cfg.env = s.Environment(written.Env)
	cfg.dir = s.Folder()
	if dir := written.Dir.Value; dir != "" {
		cfg.dir = document.Within(s.Folder(), dir)
	}
	if s.OK() && !s.CheckOnly { // it need not be installed where definitions are checked
		findProgram(s, cfg)
	}
}

// findProgram makes the path of the program absolute.
func findProgram(s *connector.Settings, cfg *config) {
	name := cfg.command[0]
	if strings.ContainsRune(name, filepath.Separator) {
		name = document.Within(cfg.dir, name)
	}
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		s.Add("/command/0", "the program %s is not there, or is not a program; install it, or correct command", pawl.Quote(cfg.command[0]))
		return
	}
	cfg.command[0] = found
}

func readNetwork(s *connector.Settings, cfg *config, address document.Secret) {
	var written struct {
		Headers document.Secrets `json:"headers"`
	}
	s.Read(&written)
	cfg.url = address.Value
	u, err := url.Parse(address.Value)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		s.Add("/url", "url %s must begin with https:// or http:// and name a host", pawl.Quote(address.Written))
	case u.User != nil:
		s.Add("/url", "url holds a user name or password; put credentials into headers")
	}
	cfg.headers = s.Headers(written.Headers, func(string) string { return "" }) // the protocol's own win
}
