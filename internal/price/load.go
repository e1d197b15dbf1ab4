package price

import (
	"maps"
	"math/big"
	"regexp"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// Kind is what the definitions name.
const Kind = "prices"

// Schema is the JSON Schema of a definition.
func Schema() []byte {
	return definition.Schema(Kind, "Pawl prices", "What the tokens of models cost, in USD.", file{})
}

// file is a definition as it stands in a file.
type file struct {
	Name   string             `json:"name" doc:"For people."`
	Models map[string]written `json:"models" definition:"required" doc:"The prices by model, as graphs report it."`
}

// written is a price as it stands in a file. Amounts are texts, because they are
// exact.
type written struct {
	Input       string `json:"input" definition:"required,scalar" doc:"USD for a unit of input tokens."`
	CachedInput string `json:"cachedInput" definition:"scalar" doc:"USD for a unit of input tokens that were cached. The default is the price of input."`
	Output      string `json:"output" definition:"required,scalar" doc:"USD for a unit of output tokens."`
	Unit        string `json:"unit" definition:"required,scalar" doc:"How many tokens a price is for: 1, 1K or 1M."`
}

// longestModel is the most bytes of a model's name.
const longestModel = 200

// Load reads the prices of the *.yaml and *.yml files of a folder: the definitions
// with kind: prices. Those of other kinds are left to their readers. No folder at
// all has no prices.
//
// It fails with pawl.ErrInvalid, whose fields tell every fault of every file with
// its place.
func Load(dir string) (*Book, error) {
	book := &Book{models: map[string]Price{}}
	if dir == "" {
		return book, nil
	}
	documents, faults := definition.ReadFolder(dir, "connections", nil)
	places := map[string]pawl.Place{} // of the models
	for _, doc := range documents {
		if doc.Kind == Kind {
			faults = append(faults, book.add(doc, places)...)
		}
	}
	if len(faults) > 0 {
		return nil, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "load prices", Msg: "the prices of models are not valid", Fields: definition.InOrder(faults),
			Hint: "Prices look like: {kind: prices, models: {gpt-x: {input: 1.25, output: 10, unit: 1M}}}.",
		}
	}
	return book, nil
}

// add takes the prices of a definition, or tells its faults.
func (b *Book) add(doc definition.Document, places map[string]pawl.Place) []pawl.Field {
	var w file
	faults := doc.Check(&w)
	for _, model := range slices.Sorted(maps.Keys(w.Models)) {
		at := "/models" + definition.Pointer(model)
		if model == "" || len(model) > longestModel {
			faults.AddName(at, "a model has a name of 1 to %d bytes", longestModel)
			continue
		}
		price := w.Models[model]
		if units()[price.Unit] == 0 && !faults.At(at+"/unit") {
			faults.Add(at+"/unit", "unit %s is not known. It is 1, 1K or 1M", pawl.Quote(price.Unit))
		}
		p := Price{
			input: price.read(faults, at+"/input", price.Input), output: price.read(faults, at+"/output", price.Output), text: price.words(),
		}
		if p.cached = p.input; price.CachedInput != "" {
			p.cached = price.read(faults, at+"/cachedInput", price.CachedInput)
		}
		if first, taken := places[model]; taken {
			faults.AddName(at, "the model %s has its price at %s already", pawl.Quote(model), first)
			continue
		}
		places[model] = doc.Place(at)
		b.models[model] = p
	}
	return faults.Fields()
}

// amount is how a price may be written: never so that it would need much memory.
var amount = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?$`)

// mostUSD is the highest price of a unit.
const mostUSD = 1_000_000

// read is the price of one token, or notes what is wrong with it.
func (w written) read(faults *definition.Faults, pointer, text string) *big.Rat {
	if faults.At(pointer) {
		return new(big.Rat)
	}
	price, ok := new(big.Rat), amount.MatchString(text)
	if ok {
		price, ok = price.SetString(text)
	}
	switch {
	case !ok:
		faults.Add(pointer, "%s is not a price in USD such as 1.25, and not negative", pawl.Quote(text))
		return new(big.Rat)
	case price.Cmp(new(big.Rat).SetInt64(mostUSD)) > 0:
		faults.Add(pointer, "%s is too much: a price is at most %d USD", text, mostUSD)
		return new(big.Rat)
	}
	return price.Quo(price, new(big.Rat).SetInt64(max(units()[w.Unit], 1)))
}
