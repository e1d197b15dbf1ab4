package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// Bounds of what is kept about rows that did not fit.
const (
	maxRejects   = 1000
	maxRejectRaw = 4 << 10 // bytes
)

// mapper turns the rows of one page into typed values.
type mapper struct {
	fields []spec.Field
	places []int // of each field: the id of its node
	mark   int   // the id of the node of the incremental cursor, or -1
	raw    bool
	root   *node
	picker *picker
	encode encoder

	rows    *spool
	read    int // rows that came, with those that did not fit
	rejects []Reject
	refused int
	best    mark
	content hash.Hash // of all rows as they came
	newline []byte    // made once, because what is hashed escapes
}

// newMapper makes the mapper of a definition. An error says which path is
// wrong.
func newMapper(d spec.Definition, folder string) (*mapper, error) {
	m := &mapper{
		fields: d.Response.Fields, raw: d.Response.Raw, mark: -1,
		rows: &spool{folder: folder}, content: sha256.New(), newline: []byte("\n"),
	}
	if d.Response.Format == spec.CSV {
		return m, nil // the header row says where the fields are
	}
	t := newTree()
	m.root = t.root
	for _, f := range m.fields {
		n, err := t.add(f.Source)
		if err != nil {
			return nil, err
		}
		m.places = append(m.places, n.id)
	}
	if d.Incremental != nil && d.Incremental.CursorPath != "" {
		n, err := t.add(d.Incremental.CursorPath)
		if err != nil {
			return nil, err
		}
		m.mark = n.id
	}
	m.picker = newPicker(t)
	return m, nil
}

// width is the number of values in a row.
func (m *mapper) width() int {
	if m.raw {
		return len(m.fields) + 1
	}
	return len(m.fields)
}

// addJSON takes a row in well-formed JSON. An error is one of the spool.
func (m *mapper) addJSON(row []byte) error {
	m.begin(row)
	m.picker.pick(m.root, row)
	if why := m.writeJSON(row); why != "" {
		m.refuse(why, row)
		return nil
	}
	if m.mark >= 0 {
		m.noteMark(m.picker.at(m.mark))
	}
	return m.keep()
}

func (m *mapper) keep() error {
	if err := m.rows.keep(); err != nil {
		return ours("keep the rows of a page", err)
	}
	return nil
}

// begin counts a row, as it came, and opens it in the spool.
func (m *mapper) begin(raw []byte) {
	m.read++
	m.content.Write(raw)
	m.content.Write(m.newline)
	m.rows.open()
}

// writeJSON appends the values of the row that was picked, or says why not.
func (m *mapper) writeJSON(row []byte) string {
	if m.picker.twice != "" {
		return fmt.Sprintf("the name %q is there twice", m.picker.twice)
	}
	if row[0] != '{' && row[0] != '[' && len(m.root.children) > 0 {
		return "the row is neither an object nor an array"
	}
	buf, why := m.rows.buf, "" // held here, so that it is stored once a row
	for i := range m.fields {
		f := &m.fields[i]
		value := m.picker.at(m.places[i])
		if value == nil || value[0] == 'n' {
			if f.Required {
				return f.Source + " is missing"
			}
			buf = append(buf, tagNull)
			continue
		}
		if buf, why = m.encode.json(buf, f.Type, value); why != "" {
			return f.Source + " " + why
		}
	}
	if m.raw {
		if buf, why = appendJSON(buf, row); why != "" {
			return "the row " + why
		}
	}
	m.rows.buf = buf
	return ""
}

// refuse drops the open row and keeps the reason, unless there are many.
func (m *mapper) refuse(why string, raw []byte) {
	m.rows.drop()
	m.refused++
	if len(m.rejects) < maxRejects {
		m.rejects = append(m.rejects, Reject{Row: m.read, Reason: why, Raw: cut(raw)})
	}
}

// cut keeps the beginning of a row as text that can be stored.
func cut(raw []byte) string {
	text := strings.ToValidUTF8(string(raw[:min(len(raw), maxRejectRaw)]), "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) > maxRejectRaw {
		text = strings.ToValidUTF8(text[:maxRejectRaw], "")
	}
	return text
}

// noteMark keeps the greatest cursor. Only scalars are cursors.
func (m *mapper) noteMark(raw []byte) {
	if len(raw) == 0 || raw[0] == 'n' || raw[0] == '{' || raw[0] == '[' {
		return
	}
	text := raw
	if raw[0] == '"' {
		var why string
		if text, why = m.encode.unquote(raw); why != "" {
			return
		}
	}
	m.best.raise(text)
}

// fingerprint names the content of the page.
func (m *mapper) fingerprint() string { return hex.EncodeToString(m.content.Sum(nil)[:8]) }
