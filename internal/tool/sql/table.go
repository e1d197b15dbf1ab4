package sqltool

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// largestResult is the size of the rows of a result, in bytes of JSON.
const largestResult = 4 << 20

// limit is how much of a result is kept.
type limit struct {
	rows  int
	bytes int
}

// table is what a statement answered.
type table struct {
	columns   []string
	names     []json.RawMessage // the columns as JSON
	rows      []json.RawMessage
	truncated bool // there were more rows
	affected  int64

	limit limit
	size  int // of the rows, in bytes
}

// newTable makes an empty table. Rows become objects, so that no two columns
// can have the same name.
func newTable(columns []string, l limit) (table, error) {
	t := table{columns: columns, limit: l, rows: []json.RawMessage{}}
	for i, name := range columns {
		if slices.Contains(columns[:i], name) {
			return t, connector.BadArguments("Give each column a name of its own: select a.id as a_id, b.id as b_id.", "two columns of the result are called %s", pawl.Quote(name))
		}
		t.names = append(t.names, encodeText(name))
	}
	return t, nil
}

// add adds a row. It reports whether there was room for it.
func (t *table) add(values []json.RawMessage) (bool, error) {
	if len(t.rows) >= t.limit.rows {
		t.truncated = true
		return false, nil
	}
	var row bytes.Buffer
	row.WriteByte('{')
	for i, value := range values {
		if i > 0 {
			row.WriteByte(',')
		}
		row.Write(t.names[i])
		row.WriteByte(':')
		row.Write(value)
	}
	row.WriteByte('}')
	if row.Len() > t.limit.bytes {
		return false, tooLarge()
	}
	if t.size+row.Len() > t.limit.bytes {
		t.truncated = true
		return false, nil
	}
	t.size += row.Len()
	t.rows = append(t.rows, row.Bytes())
	return true, nil
}

// tooLarge is a row that cannot be given to a script.
func tooLarge() *connector.Error {
	return &connector.Error{
		Class: pawl.ClassLogic, Code: "too_large", NotApplied: true,
		Msg: "a row of the result is larger than the 4 MiB allowed", Hint: "Select fewer or smaller columns.",
	}
}

// queryResult is what query answers.
func (t *table) queryResult() (json.RawMessage, error) {
	columns := t.columns
	if columns == nil {
		columns = []string{}
	}
	return encode(struct {
		Columns   []string          `json:"columns"`
		Rows      []json.RawMessage `json:"rows"`
		Truncated bool              `json:"truncated"`
	}{columns, t.rows, t.truncated})
}

// execResult is what exec answers.
func (t *table) execResult() (json.RawMessage, error) {
	return encode(struct {
		RowsAffected int64             `json:"rowsAffected"`
		Rows         []json.RawMessage `json:"rows"` // of RETURNING
		Truncated    bool              `json:"truncated"`
	}{t.affected, t.rows, t.truncated})
}

// encode makes a result. Nothing of it has happened yet if that does not work.
func encode(result any) (json.RawMessage, error) {
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "internal", NotApplied: true, Msg: "the result cannot be encoded", Err: err}
	}
	return raw, nil
}

// encodeText writes a text in JSON. Bytes that are no text are replaced.
func encodeText(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string always can be
	return raw
}
