package price

import (
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// FuzzBook: whatever a file of prices has, it is refused with places, or nothing in it
// costs less than nothing.
func FuzzBook(f *testing.F) {
	for _, text := range []string{
		"kind: prices\nmodels: {gpt-x: {input: 1.25, output: 10, unit: 1M}}\n", "kind: prices\nmodels: {a: {input: 1e99, output: -1, unit: 1K}}\n", "kind: prices\nmodels: {a: {input: 0.0, cachedInput: 1e-20, output: 5, unit: 1}}\n",
		"kind: prices\nmodels: []\n", "kind: prices\nmodels: {\"\": {}}\n", "kind: prices\nmodels: {a: {input: 999999, output: 1/3, unit: 1M}}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		documents, err := definition.Read("x.yaml", text)
		if err != nil {
			return
		}
		book := &Book{models: map[string]Price{}}
		for _, d := range documents {
			if d.Kind != Kind {
				continue
			}
			if faults := book.add(d, map[string]pawl.Place{}); len(faults) > 0 {
				for _, fault := range faults {
					if fault.String() == "" {
						t.Fatalf("a fault without a word: %+v", fault)
					}
				}
				return
			}
		}
		for name, p := range book.models {
			if p.input.Sign() < 0 || p.cached.Sign() < 0 || p.output.Sign() < 0 || name == "" {
				t.Fatalf("%q costs %v, %v, %v", name, p.input, p.cached, p.output)
			}
		}
	})
}
