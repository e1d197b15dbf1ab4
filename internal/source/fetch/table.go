package fetch

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// table reads an answer in CSV whose first row names the columns. The source of
// a field is the name of a column as it is, with any dots. An empty cell is
// null.
type table struct {
	rows    *mapper
	header  []string
	columns []int // of each field
	mark    int   // column of the incremental cursor, or -1
	scratch []byte
}

func readTable(in io.Reader, rows *mapper, d spec.Definition) error {
	guard := &rowGuard{in: in, end: maxRow}
	reader := csv.NewReader(guard)
	reader.FieldsPerRecord = -1 // checked here, row by row
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return headerError(err)
	}
	t := &table{rows: rows, header: slices.Clone(header), mark: -1}
	if err := t.findColumns(d); err != nil {
		return err
	}
	open := false // the row before was within quotes when it ended
	for {
		guard.from(reader.InputOffset())
		record, err := reader.Read()
		broken, isBroken := errors.AsType[*csv.ParseError](err)
		switch {
		case errors.Is(err, io.EOF) && open:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case isBroken:
			t.refuse(record, "the quotes of the row do not match")
			open = errors.Is(broken.Err, csv.ErrQuote)
			continue
		case err != nil:
			return err
		}
		open = false
		if err := t.add(record); err != nil {
			return err
		}
	}
}

func headerError(err error) error {
	if _, ok := errors.AsType[*csv.ParseError](err); ok || errors.Is(err, io.EOF) {
		return faultf(CodeNotCSV, "the first row of the answer does not name columns")
	}
	return err
}

// findColumns finds the column of each field.
func (t *table) findColumns(d spec.Definition) error {
	for i, name := range t.header {
		t.header[i] = strings.TrimSpace(name)
	}
	for _, f := range t.rows.fields {
		at, err := t.column(f.Source)
		if err != nil {
			return err
		}
		t.columns = append(t.columns, at)
	}
	if d.Incremental == nil || d.Incremental.CursorPath == "" {
		return nil
	}
	var err error
	t.mark, err = t.column(d.Incremental.CursorPath)
	return err
}

func (t *table) column(name string) (int, error) {
	at := slices.Index(t.header, name)
	if at < 0 {
		shown := t.header[:min(len(t.header), 10)]
		return 0, faultf(CodeBadPath, "the answer has no column %s (it has %s)", show([]byte(name)), show([]byte(strings.Join(shown, ", "))))
	}
	if slices.Contains(t.header[at+1:], name) {
		return 0, faultf(CodeBadPath, "the answer has the column %s twice", show([]byte(name)))
	}
	return at, nil
}

// refuse rejects a row before it is looked at.
func (t *table) refuse(record []string, why string) {
	raw := t.joined(record)
	t.rows.begin(raw)
	t.rows.refuse(why, raw)
}

// joined is the row as text; it is valid until the next call.
func (t *table) joined(record []string) []byte {
	t.scratch = t.scratch[:0]
	for i, cell := range record {
		if i > 0 {
			t.scratch = append(t.scratch, ',')
		}
		t.scratch = append(t.scratch, cell...)
	}
	return t.scratch
}

func (t *table) add(record []string) error {
	if len(record) != len(t.header) {
		t.refuse(record, fmt.Sprintf("the row has %d columns, and the header has %d", len(record), len(t.header)))
		return nil
	}
	t.rows.begin(t.joined(record))
	if why := t.write(record); why != "" {
		t.rows.refuse(why, t.joined(record))
		return nil
	}
	if t.mark >= 0 {
		t.rows.best.raise([]byte(record[t.mark]))
	}
	return t.rows.keep()
}

func (t *table) write(record []string) (why string) {
	m := t.rows
	for i := range m.fields {
		f := &m.fields[i]
		cell := record[t.columns[i]]
		if cell == "" {
			if f.Required {
				return f.Source + " is missing"
			}
			m.rows.buf = append(m.rows.buf, tagNull)
			continue
		}
		t.scratch = append(t.scratch[:0], cell...)
		if m.rows.buf, why = m.encode.text(m.rows.buf, f.Type, t.scratch); why != "" {
			return f.Source + " " + why
		}
	}
	if !m.raw {
		return ""
	}
	if m.rows.buf, why = appendJSON(m.rows.buf, t.object(record)); why != "" {
		return "the row " + why
	}
	return ""
}

// object writes a row as JSON, all values as text.
func (t *table) object(record []string) []byte {
	out := append(t.scratch[:0], '{')
	for i, cell := range record {
		if i > 0 {
			out = append(out, ',')
		}
		out = quote(out, t.header[i])
		out = append(out, ':')
		out = quote(out, cell)
	}
	t.scratch = append(out, '}')
	return t.scratch
}

// quote appends a JSON string. Broken UTF-8 stays broken, for storable to see.
func quote(out []byte, text string) []byte {
	if quoted, err := jsontext.AppendQuote(out, text); err == nil {
		return quoted
	}
	return append(append(append(out, '"'), "\xff"...), '"')
}
