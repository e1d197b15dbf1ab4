package price

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// load reads a folder of these files.
func load(t *testing.T, files map[string]string) (*Book, []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	book, err := Load(dir)
	var told []string
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		if e.Code != pawl.CodeInvalid || e.Hint == "" {
			t.Errorf("%v without a hint", err)
		}
		for _, f := range e.Fields {
			told = append(told, strings.ReplaceAll(f.String(), dir+string(filepath.Separator), ""))
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return book, told
}

// surface 2, ordinary work: the definition as it is printed there.
func TestTokensCostWhatTheBookSays(t *testing.T) {
	book, faults := load(t, map[string]string{
		"a.yaml": "kind: prices\nmodels: {\"gpt-x\": {input: 1.25, output: 10, unit: 1M}}\n",
		"b.yaml": "kind: prices\nname: more\nmodels:\n  claude: {input: \"3\", cachedInput: 0.30, output: 15, unit: 1M}\n  old: {input: 0.0015, output: 2e-3, unit: 1K}\n" +
			"  each: {input: 0.00000125, output: 0, unit: 1}\n  free: {input: 0, output: 0, unit: 1M}\n",
		"c.yaml": "kind: executor\nname: x\n",
	})
	if faults != nil {
		t.Fatal(faults)
	}
	for _, c := range []struct {
		model  string
		tokens Tokens
		want   pawl.USD
	}{
		{"gpt-x", Tokens{Input: 1_000_000, Output: 1_000_000}, 112_500_000},
		{"gpt-x", Tokens{Input: 4, Output: 9}, 950},                                    // 0.000005 + 0.00009 USD
		{"gpt-x", Tokens{Input: 1}, 13},                                                // 12.5, rounded up once
		{"gpt-x", Tokens{Input: 1, Output: 1}, 113},                                    // 12.5 + 100
		{"gpt-x", Tokens{Input: 10, CachedInput: 10}, 125},                             // no price of its own
		{"claude", Tokens{Input: 100, CachedInput: 90, Output: 1}, 10*30 + 90*3 + 150}, //
		{"claude", Tokens{Input: 100, CachedInput: 900}, 100 * 3},                      // no more than the input
		{"old", Tokens{Input: 1000, Output: 1000}, 35_000},                             //
		{"each", Tokens{Input: 1}, 13}, {"each", Tokens{Input: 2}, 25},                 // the price is not rounded
		{"free", Tokens{Input: 1 << 50, Output: 1 << 50}, 0}, {"gpt-x", Tokens{}, 0}, {"gpt-x", Tokens{Input: -5, Output: -1}, 0}, //
		{"gpt-x", Tokens{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64}, // more than can be booked
	} {
		p, known := book.Find(c.model)
		if got := p.Cost(c.tokens); !known || got != c.want {
			t.Errorf("%s, %+v: %d, not %d", c.model, c.tokens, got, c.want)
		}
	}
	for model, want := range map[string]string{
		"gpt-x": "1.25 in, 10 out per 1M tokens", "claude": "3 in, 0.30 cached, 15 out per 1M tokens", "each": "0.00000125 in, 0 out per 1 token",
	} {
		if p, _ := book.Find(model); p.String() != want {
			t.Errorf("%s: %s", model, p)
		}
	}
	for _, model := range []string{"", "GPT-X", "gpt-x-2026"} {
		if _, known := book.Find(model); known {
			t.Errorf("%q has a price", model)
		}
	}
	if _, known := (*Book)(nil).Find("gpt-x"); known {
		t.Error("no book has a price")
	}
	if empty, err := Load(""); err != nil || len(empty.models) != 0 {
		t.Error(empty, err)
	}
}

func TestBadPricesAreToldWithTheirPlace(t *testing.T) {
	one := func(entry string) string { return "kind: prices\nmodels:\n  m: " + entry + "\n" }
	for text, want := range map[string]string{
		"kind: prices\n":              "a.yaml:1:1: models is missing",
		"kind: prices\nmodels: {}\n":  "a.yaml:2:9: models is empty",
		"kind: prices\nmodels: [m]\n": "a.yaml:2:9: models must be a mapping",
		"kind: prices\nmodel: {}\nmodels: {m: {input: 1, output: 1, unit: 1}}\n":                            `a.yaml:2:1: unknown field "model". Did you mean models?`,
		one("{input: -1, output: 1, unit: 1M}"):                                                             `a.yaml:3:14: "-1" is not a price in USD such as 1.25, and not negative`,
		one("{input: .nan, output: 1, unit: 1M}"):                                                           "a.yaml:3:14: ",
		one("{input: .inf, output: 1, unit: 1M}"):                                                           "a.yaml:3:14: ",
		one("{input: 1, output: lots, unit: 1M}"):                                                           `a.yaml:3:25: "lots" is not a price`,
		one("{input: 1, output: 1e99, unit: 1M}"):                                                           "a.yaml:3:25: 1e99 is too much: a price is at most 1000000 USD",
		one("{input: 1, output: 1000000.01, unit: 1M}"):                                                     "a.yaml:3:25: 1000000.01 is too much",
		one("{input: 1, output: 1e-999999999, unit: 1M}"):                                                   "a.yaml:3:25: ",
		one("{input: 1, output: " + strings.Repeat("9", 5000) + ", unit: 1M}"):                              "a.yaml:3:25: ",
		one("{input: 1, output: 1, unit: 1B}"):                                                              `a.yaml:3:34: unit "1B" is not known.`,
		one("{input: 1, output: 1, unit: 1000}"):                                                            `a.yaml:3:34: unit "1000" is not known. It is 1, 1K or 1M`,
		one("{input: 1, output: 1}"):                                                                        "a.yaml:3:7: unit is missing",
		one("{output: 1, unit: 1M}"):                                                                        "a.yaml:3:7: input is missing",
		one("{input: 1, output: 1, unit: 1M, cached: 1}"):                                                   `a.yaml:3:38: unknown field "cached".`,
		one("{input: 1, output: [1], unit: 1M}"):                                                            "a.yaml:3:25: output must be",
		one("{input: 1, output: 1, unit: 1, cachedInput: -1}"):                                              `a.yaml:3:50: "-1" is not a price`,
		"kind: prices\nmodels:\n  \"\": {input: 1, output: 1, unit: 1}\n":                                   "a.yaml:3:3: a model has a name of 1 to 200 bytes",
		"kind: prices\nmodels:\n  m: {input: 1, output: 1, unit: 1}\n  m: {input: 2, output: 1, unit: 1}\n": "a.yaml:4:3: ",
	} {
		book, faults := load(t, map[string]string{"a.yaml": text})
		if len(faults) != 1 || !strings.HasPrefix(faults[0], want) || book != nil {
			t.Errorf("%.200s\n%q, not %s", text, faults, want)
		}
	}
}

func TestOneModelHasOnePrice(t *testing.T) {
	_, faults := load(t, map[string]string{
		"a.yaml": "kind: prices\nmodels: {m: {input: 1, output: 1, unit: 1M}}\n---\nkind: prices\nmodels: {n: {input: 1, output: 1, unit: 1M}}\n",
		"b.yaml": "kind: prices\nmodels:\n  n: {input: 1, output: 1, unit: 1M}\n  m: {input: 2, output: 1, unit: 1M}\n",
	})
	if len(faults) != 2 || !strings.HasPrefix(faults[0], `b.yaml:3:3: the model "n" has its price at `) || !strings.HasSuffix(faults[1], "a.yaml:2:14 already") {
		t.Errorf("%q", faults)
	}
}

func TestSchemaNamesTheFields(t *testing.T) {
	for _, name := range []string{`"models"`, `"cachedInput"`, "1M"} {
		if !strings.Contains(string(Schema()), name) {
			t.Errorf("the schema lacks %s", name)
		}
	}
}
