package fetch

import "iter"

// Row has one value for each field of the definition, in its order: nil,
// string, int64, float64, bool, time.Time (UTC; a date is its midnight) or
// json.RawMessage. If the definition keeps rows as they came, the JSON of the
// row is the last value.
type Row []any

// Reject is a row that did not fit.
type Reject struct {
	Row    int // within its page, from 1
	Reason string
	Raw    string // as it came, cut at 4 KiB
}

// Page is one answer of the outside. Close it.
type Page struct {
	Number      int      // from 1
	Next        Position // where to go on after this page
	Last        bool     // there is nothing to go on to
	Rejects     []Reject // the first 1,000
	RejectCount int      // of all
	Count       int      // of the rows that fit
	Bytes       int64    // of the body, after decompression
	Requests    int      // calls that it took
	Status      int
	URL         string // without the values of the query
	Mark        string // the greatest incremental cursor of its rows; empty: none

	rows  *spool
	width int
}

// Rows yields the rows that fit. It may be called several times, until Close.
// A row belongs to the caller. An error is the last thing it yields.
func (p *Page) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) { p.rows.each(p.width, yield) }
}

// Close forgets the rows and removes their file, if there is one.
func (p *Page) Close() error { return p.rows.close() }
