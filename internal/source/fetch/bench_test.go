package fetch

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// customers writes rows as many APIs do: ten members, of which one is nested
// and some are not wanted.
func customers(b *bytes.Buffer, from, count int) {
	for i := from; i < from+count; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, `{"id":%d,"name":"customer number %d","email":"user%d@example.com","amount":%d.%02d,`+
			`"active":%t,"created_at":"2026-01-%02dT10:%02d:00Z","address":{"city":"Berlin","zip":"10%03d"},`+
			`"tags":["a","b"],"note":null}`,
			i, i, i, i*7, i%100, i%2 == 0, i%28+1, i%60, i%1000)
	}
}

func customerFields() []spec.Field {
	return []spec.Field{
		{Source: "id", Target: "id", Type: spec.Integer, Required: true},
		{Source: "name", Target: "name", Type: spec.Text},
		{Source: "email", Target: "email", Type: spec.Text},
		{Source: "amount", Target: "amount", Type: spec.Number},
		{Source: "active", Target: "active", Type: spec.Boolean},
		{Source: "created_at", Target: "created_at", Type: spec.Timestamp},
		{Source: "address.city", Target: "city", Type: spec.Text},
		{Source: "tags", Target: "tags", Type: spec.Object},
	}
}

func customerPage(rows int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"data":[`)
	customers(&b, 0, rows)
	b.WriteString(`],"next":"abc"}`)
	return b.Bytes()
}

// BenchmarkDecode decodes a page of 1,000 rows to typed values in the spool.
func BenchmarkDecode(b *testing.B) {
	const rows = 1000
	page := customerPage(rows)
	d := define("http://example.com/")
	d.Response.Fields = customerFields()
	d.CursorPagination = &spec.CursorPagination{CursorParam: "cursor", NextCursorPath: "next"}
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		decodePage(b, d, page, rows)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func decodePage(b *testing.B, d spec.Definition, page []byte, rows int) *mapper {
	asked, err := newSignals(d)
	if err != nil {
		b.Fatal(err)
	}
	m, err := newMapper(d, "")
	if err != nil {
		b.Fatal(err)
	}
	if err := readDocument(bytes.NewReader(page), asked, m); err != nil {
		b.Fatal(err)
	}
	if m.read != rows || m.refused != 0 || string(asked.at("next")) != `"abc"` {
		b.Fatalf("read %d rows, %d refused: %v", m.read, m.refused, m.rejects)
	}
	return m
}

// BenchmarkRows reads the typed values back.
func BenchmarkRows(b *testing.B) {
	const rows = 1000
	page := customerPage(rows)
	d := define("http://example.com/")
	d.Response.Fields = customerFields()
	d.CursorPagination = &spec.CursorPagination{CursorParam: "cursor", NextCursorPath: "next"}
	m := decodePage(b, d, page, rows)
	p := &Page{rows: m.rows, width: m.width()}
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range p.Rows() {
			n++
		}
		if n != rows {
			b.Fatalf("got %d rows", n)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
