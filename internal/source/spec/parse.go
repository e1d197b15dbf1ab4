package spec

import (
	"errors"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// Kind is what a document says that defines a source.
const Kind = "source"

// Parse reads a file of YAML, whose documents all define sources; file is for
// messages only. What it returns is normalised. The error is a *pawl.Error of
// pawl.CodeInvalid, whose fields tell every fault with its place.
func Parse(file string, text []byte) ([]Definition, error) {
	documents, err := definition.Read(file, text)
	if pawl.ErrorCode(err) == pawl.CodeTooLarge {
		return nil, err
	}
	faults := fieldsOf(err)
	var sources []Definition
	places := map[string]pawl.Place{}
	for _, doc := range documents {
		source, wrong := FromDocument(doc)
		if first, twice := places[source.Name]; twice && len(wrong) == 0 {
			wrong = []pawl.Field{doc.Fault("/name", "the source %s is already defined at %s", source.Name, first)}
		}
		places[source.Name] = doc.Place("/name")
		sources, faults = append(sources, source), append(faults, wrong...)
	}
	if len(faults) > 0 {
		return nil, definition.Invalid("read sources", faults)
	}
	return sources, nil
}

// FromJSON reads the definition of a source from JSON, as the API takes it: the
// kind may be left out. What it returns is normalised. The error is like that
// of Parse; the faults have JSON pointers and no places.
func FromJSON(raw []byte) (Definition, error) {
	doc, err := definition.ReadJSON(raw)
	if err != nil {
		return Definition{}, err
	}
	source, faults := FromDocument(doc)
	if len(faults) > 0 {
		return Definition{}, definition.Invalid("read source", faults)
	}
	return source, nil
}

// FromDocument reads the definition of a source from a document that was read
// before, for files that define things of several kinds.
func FromDocument(doc definition.Document) (Definition, []pawl.Field) {
	if doc.Kind != "" && doc.Kind != Kind {
		return Definition{}, []pawl.Field{doc.Fault("/kind", "kind %s does not belong here. %s", pawl.Quote(doc.Kind), pawl.Suggest(doc.Kind, []string{Kind}, "The kind of a source is source."))}
	}
	d := defaults()
	c := checker{doc: doc, d: &d, faults: doc.Check(&d)}
	c.whole()
	d.StatusGiven = doc.Has("/status")
	return d.Normalize(), c.faults.Fields()
}

func fieldsOf(err error) []pawl.Field {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Fields
	}
	return nil
}
