package table

import "github.com/pawlrun/pawl/internal/source/spec"

// A chunk is written at once: this many rows, or fewer that are large.
const (
	chunkRows  = 1000
	chunkBytes = 4 << 20
)

// chunk is some rows of a page, ready to be bound.
type chunk struct {
	width int
	kinds []spec.Type // of the values of a row
	flat  []any       // row after row, as normal makes the values
	at    map[string]int
	bytes int
}

func newChunk(columns []column) *chunk {
	rows := &chunk{width: len(columns), flat: make([]any, 0, 64*len(columns)), at: map[string]int{}}
	for _, c := range columns {
		rows.kinds = append(rows.kinds, c.kind)
	}
	return rows
}

func (rows *chunk) len() int        { return len(rows.flat) / rows.width }
func (rows *chunk) row(i int) []any { return rows.flat[i*rows.width : (i+1)*rows.width] }
func (rows *chunk) full() bool      { return rows.len() >= chunkRows || rows.bytes >= chunkBytes }

func (rows *chunk) clear() {
	clear(rows.flat)
	clear(rows.at)
	rows.flat, rows.bytes = rows.flat[:0], 0
}

// add takes a row in.
func (rows *chunk) add(values []any) { rows.flat = append(rows.flat, values...) }

// addOnce takes a row in, unless there is one of the same identity: then the
// last one stays, or the first one where rows that are there stay as they are.
func (rows *chunk) addOnce(identity []byte, values []any, lastWins bool) (added bool) {
	if i, ok := rows.at[string(identity)]; ok {
		if lastWins {
			copy(rows.row(i), values)
		}
		return false
	}
	rows.at[string(identity)] = rows.len()
	rows.add(values)
	return true
}

// pick makes a chunk of some of the rows.
func (rows *chunk) pick(places []int) *chunk {
	out := &chunk{width: rows.width, kinds: rows.kinds, flat: make([]any, 0, len(places)*rows.width)}
	for _, i := range places {
		out.flat = append(out.flat, rows.row(i)...)
	}
	return out
}
