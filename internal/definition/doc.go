// Package definition reads the files in which people define things: sources,
// schedules, providers, connections and executors, and the config file of the
// command line. It knows of none of them:
//
//	documents, err := definition.Read("prices.yaml", text)
//	for _, doc := range documents {
//		switch doc.Kind {
//		case "source":
//			var written struct {
//				Name string `json:"name" definition:"required"`
//				Mode string `json:"mode" definition:"oneof=append|upsert"`
//			}
//			faults := doc.Check(&written)
//			if badName(written.Name) {
//				faults.Add("/name", "%q is no name", written.Name)
//			}
//			fields := faults.Fields()
//		}
//	}
//
// Every fault is told, not only the first, with its place in the file and with
// the JSON pointer of what is wrong. Reading is strict: fields that
// nobody knows, names given twice and values of another type are faults. A text
// that is read into a Secret may name variables of the environment and files.
//
// Files come from anywhere, so what makes a parser slow is refused before it
// is parsed: files over LargestFile, nesting over deepest, and more names than
// mostNames. Aliases, merge keys and tags are refused: with them, a short file
// can stand for an endless one, and a reader has to look elsewhere to know
// what a line means.
package definition

// The limits of a file.
const (
	// LargestFile is in bytes.
	LargestFile = 256 << 10

	// deepest is how far lists and mappings may be nested.
	deepest = 64

	// mostNames of fields may be in one document. The parser needs time with
	// the square of their number.
	mostNames = 5000

	// mostFaults are told of one document; the others are counted.
	mostFaults = 100
)
