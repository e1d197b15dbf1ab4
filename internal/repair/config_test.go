package repair

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

func TestSettingsAreChecked(t *testing.T) {
	model := Config{Kind: KindOpenAI, URL: "https://models.example/v1", Model: "small"}
	with := func(change func(*Config)) Config {
		cfg := model
		change(&cfg)
		return cfg
	}
	tests := []struct {
		name    string
		cfg     Config
		pointer string // empty when it is right
	}{
		{"a model", model, ""},
		{"a command", Config{Kind: KindCommand, Command: []string{"fix"}}, ""},
		{"no kind", Config{}, "/kind"},
		{"no program", Config{Kind: KindCommand}, "/command"},
		{"a command with a key", Config{Kind: KindCommand, Command: []string{"fix"}, Key: testKey}, "/kind"},
		{"an odd environment", Config{Kind: KindCommand, Command: []string{"fix"}, Env: []string{testKey}}, "/env"},
		{"no model", with(func(c *Config) { c.Model = "" }), "/model"},
		{"a command for a model", with(func(c *Config) { c.Command = []string{"fix"} }), "/kind"},
		{"no URL", with(func(c *Config) { c.URL = "" }), "/url"},
		{"a URL with a password", with(func(c *Config) { c.URL = "https://u:" + testKey + "@models.example" }), "/url"},
		{"a URL with a query", with(func(c *Config) { c.URL = "https://models.example?key=" + testKey }), "/url"},
		{"a version twice", with(func(c *Config) { c.Kind = KindAnthropic }), "/url"},
		{"a key with a line break", with(func(c *Config) { c.Key = testKey + "\n" }), "/key"},
		{"a negative timeout", with(func(c *Config) { c.Timeout = -1 }), "/timeout"},
		{"a negative limit", with(func(c *Config) { c.MaxTokens = -1 }), "/maxTokens"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.cfg, publicClient(t))
			if tt.pointer == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*pawl.Error](err)
			if !ok || e.Code != pawl.CodeInvalid || len(e.Fields) == 0 || e.Fields[0].Pointer != tt.pointer {
				t.Fatalf("got %+v, want a fault at %s", err, tt.pointer)
			}
			if strings.Contains(err.Error(), testKey) {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
	if _, err := New(model, nil); err == nil {
		t.Error("a model without a client was accepted")
	}
}
