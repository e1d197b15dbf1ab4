package fetch

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxRow is the limit of one row, and of any other value that is read whole.
const maxRow = 4 << 20

// errRow is what a reader says past the limit of a row.
var errRow = errors.New("a row has more than 4 MiB")

// rowGuard is a reader that ends in errRow when more than maxRow bytes are
// read from the start of a row. A decoder that keeps a row in memory therefore
// never keeps more.
type rowGuard struct {
	in    io.Reader
	given int64
	end   int64
}

// from tells that a row begins at an offset.
func (g *rowGuard) from(offset int64) { g.end = offset + maxRow }

func (g *rowGuard) Read(p []byte) (int, error) {
	left := g.end - g.given
	if left <= 0 {
		return 0, errRow
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := g.in.Read(p)
	g.given += int64(n)
	return n, err
}

// decodeOptions take what is well formed. Names that are there twice and broken
// UTF-8 are dealt with row by row.
func decodeOptions() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// document reads an answer in JSON: the rows at the data path, and the values
// that steer the fetch, which may stand before or after them.
type document struct {
	in    *rowGuard
	dec   *jsontext.Decoder
	rows  *mapper
	asked *signals
	data  *node
}

func readDocument(in io.Reader, asked *signals, rows *mapper) error {
	guard := &rowGuard{in: in, end: maxRow}
	doc := document{
		in: guard, dec: jsontext.NewDecoder(guard, decodeOptions()...),
		rows: rows, asked: asked, data: asked.data,
	}
	if err := doc.walk(asked.tree.root); err != nil {
		return err
	}
	return doc.end()
}

// end makes sure that nothing follows the document.
func (d *document) end() error {
	d.in.from(d.dec.InputOffset())
	_, err := d.dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		e := faultf(CodeNotJSON, "the answer has more than one JSON value")
		e.Hint = "if every line is a value, set response.format to ndjson"
		return e
	}
	return err
}

// walk reads the next value, at a node of the tree.
func (d *document) walk(n *node) error {
	d.in.from(d.dec.InputOffset())
	kind := d.dec.PeekKind()
	switch {
	case n == d.data:
		return d.readData(n, kind)
	case kind == '{' && len(n.children) > 0:
		return d.object(n)
	case kind == '[' && len(n.children) > 0:
		return d.array(n)
	}
	value, err := d.dec.ReadValue()
	if err != nil {
		return err
	}
	return d.asked.note(n, value)
}

func (d *document) object(n *node) error {
	if err := d.asked.note(n, []byte("{}")); err != nil {
		return err
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for {
		d.in.from(d.dec.InputOffset())
		token, err := d.dec.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '}' {
			return nil
		}
		name := token.String()
		if n == d.asked.tree.root {
			d.asked.noteName(name)
		}
		if child := n.find([]byte(name), 0); child >= 0 {
			err = d.walk(n.children[child].to)
		} else {
			err = d.skip()
		}
		if err != nil {
			return err
		}
	}
}

func (d *document) array(n *node) error {
	if err := d.asked.note(n, []byte("[]")); err != nil {
		return err
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for index := 0; ; index++ {
		d.in.from(d.dec.InputOffset())
		if d.dec.PeekKind() == ']' {
			_, err := d.dec.ReadToken()
			return err
		}
		var err error
		if child := n.at(index); child != nil {
			err = d.walk(child)
		} else {
			err = d.skip()
		}
		if err != nil {
			return err
		}
	}
}

// skip passes over a value of any size.
func (d *document) skip() error {
	for depth := d.dec.StackDepth(); ; {
		d.in.from(d.dec.InputOffset())
		if _, err := d.dec.ReadToken(); err != nil {
			return err
		}
		if d.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// readData reads the value at the data path: an array of rows, one row, or
// nothing.
func (d *document) readData(n *node, kind jsontext.Kind) error {
	switch kind {
	case '[':
		if err := d.asked.note(n, []byte("[]")); err != nil {
			return err
		}
		return d.readRows(n)
	case 'n':
		if _, err := d.dec.ReadToken(); err != nil {
			return err
		}
		return d.asked.note(n, []byte("null"))
	case '{':
		value, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := d.asked.note(n, []byte("{}")); err != nil {
			return err
		}
		d.asked.noteBelow(n, value)
		return d.rows.addJSON(value)
	case '"', '0', 't', 'f':
		if _, err := d.dec.ReadValue(); err != nil { // it may be cut off
			return err
		}
		return faultf(CodeBadPath, "what is at response.dataPath is neither an array nor an object")
	default: // no value begins here; reading one says why
		_, err := d.dec.ReadValue()
		return err
	}
}

func (d *document) readRows(n *node) error {
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for index := 0; ; index++ {
		d.in.from(d.dec.InputOffset())
		if d.dec.PeekKind() == ']' {
			_, err := d.dec.ReadToken()
			return err
		}
		value, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		if len(n.children) > 0 {
			if child := n.at(index); child != nil {
				d.asked.noteBelow(child, value)
			}
		}
		if err := d.rows.addJSON(value); err != nil {
			return err
		}
	}
}
