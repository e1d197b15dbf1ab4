package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

const pageRows = 1000

// row is one row of the measured shape.
type row struct {
	id     int64
	symbol string
	price  float64
	open   bool
	at     time.Time
	note   string
}

func rowOf(id int64) row {
	return row{
		id: id, symbol: "SYM" + strconv.FormatInt(id%977, 10), price: float64(id%100_000) / 100, open: id%2 == 0,
		at: time.UnixMilli(1_700_000_000_000 + id*1000).UTC(), note: "a note of some length for row " + strconv.FormatInt(id, 10),
	}
}

// json appends the row as the server sends it, with a field that nobody asks
// for.
func (r row) json(to []byte) []byte {
	return fmt.Appendf(to, `{"id":%d,"symbol":%q,"quote":{"price":%g,"currency":"EUR"},"open":%t,"at":%q,"note":%q,"venue":"XETR"}`,
		r.id, r.symbol, r.price, r.open, r.at.Format(time.RFC3339), r.note)
}

func jsonRows(from int64, n int) []byte {
	var out []byte
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = rowOf(from + int64(i)).json(out)
	}
	return out
}

// servePages serves pages of so many rows that were made beforehand.
func servePages(pages, rows int) *httptest.Server {
	bodies := make([][]byte, pages)
	for i := range bodies {
		bodies[i] = fmt.Appendf(nil, `{"data":[%s],"hasMore":%t}`, jsonRows(int64(i*rows), rows), i+1 < pages)
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := strconv.Atoi(r.URL.Query().Get("page"))
		if err != nil || page < 1 || page > pages {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bodies[page-1]) // a client that is gone is no concern here
	}))
}

// serveOne serves one answer of about so many bytes, made as it goes.
func serveOne(size int) (server *httptest.Server, rows int) {
	rows = size / len(jsonRows(500_000, 1))
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[`)
		for from := 0; from < rows; from += pageRows {
			if from > 0 {
				_, _ = io.WriteString(w, ",")
			}
			if _, err := w.Write(jsonRows(int64(from), min(pageRows, rows-from))); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `],"hasMore":false}`)
	})), rows
}
