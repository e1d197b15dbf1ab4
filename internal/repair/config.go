package repair

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Kinds of repairers.
const (
	KindCommand   = "command"
	KindOpenAI    = "openai"
	KindAnthropic = "anthropic"
)

// Defaults for the zero fields of Config.
const (
	DefaultTimeout = 120 * time.Second
	// DefaultMaxTokens is for the kind anthropic, whose format demands a
	// number; openai leaves it to the server.
	DefaultMaxTokens = 16_000
)

// Config says whom to ask.
type Config struct {
	Kind string // KindCommand, KindOpenAI or KindAnthropic

	// Command is a program and its arguments, started without a shell. Env is
	// what it gets beside PATH, as NAME=value.
	Command []string
	Env     []string

	// URL is what comes before /chat/completions (openai) or /v1/messages
	// (anthropic). Key may be empty for a server that wants none.
	URL   string
	Model string
	Key   string
	// MaxTokens bounds the model's answer.
	MaxTokens int

	// Timeout bounds one question.
	Timeout time.Duration
}

// New makes a repairer. The client is for models and may be nil for commands.
func New(cfg Config, client *outbound.Client) (Repairer, error) {
	if fields := cfg.faults(client); len(fields) > 0 {
		return nil, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "configure the repairer",
			Msg: strings.TrimPrefix(fields[0].Pointer, "/") + ": " + fields[0].Message, Fields: fields,
		}
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	switch cfg.Kind {
	case KindCommand:
		cfg.Command, cfg.Env = slices.Clone(cfg.Command), slices.Clone(cfg.Env)
		return &command{cfg: cfg, name: KindCommand + " " + filepath.Base(cfg.Command[0])}, nil
	case KindOpenAI:
		return newModel(cfg, client, openai{}), nil
	default:
		cfg.MaxTokens = cmp.Or(cfg.MaxTokens, DefaultMaxTokens)
		return newModel(cfg, client, anthropic{}), nil
	}
}

// faults lists what is wrong. It never quotes a value that may be secret.
func (cfg Config) faults(client *outbound.Client) []pawl.Field {
	var fields []pawl.Field
	refuse := func(when bool, pointer, message string) {
		if when {
			fields = append(fields, pawl.Field{Pointer: pointer, Message: message})
		}
	}
	refuse(cfg.Timeout < 0, "/timeout", "it is negative")
	refuse(cfg.MaxTokens < 0, "/maxTokens", "it is negative")
	switch cfg.Kind {
	case KindCommand:
		refuse(len(cfg.Command) == 0 || cfg.Command[0] == "", "/command", "name a program to start")
		refuse(cfg.URL != "" || cfg.Model != "" || cfg.Key != "", "/kind", "a command takes no url, model or key")
		for _, entry := range cfg.Env {
			name, _, ok := strings.Cut(entry, "=")
			refuse(!ok || name == "", "/env", "each entry is written NAME=value")
		}
	case KindOpenAI, KindAnthropic:
		refuse(len(cfg.Command)+len(cfg.Env) > 0, "/kind", "a model takes no command and no env")
		refuse(cfg.Model == "", "/model", "name a model")
		refuse(strings.ContainsFunc(cfg.Key, unicode.IsControl), "/key", "it holds a line break or another control character")
		refuse(client == nil, "/url", "there is no client to call it with")
		fault := urlFault(cfg.Kind, cfg.URL)
		refuse(fault != "", "/url", fault)
	default:
		refuse(true, "/kind", "the kinds are command, openai and anthropic")
	}
	return fields
}

func urlFault(kind, address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return "it is not a URL that begins with http:// or https://"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "it holds more than a host and a path; the key is a setting of its own"
	case kind == KindAnthropic && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return "leave out /v1; it is added"
	}
	return ""
}
