package fetch

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// heapWatch keeps the greatest HeapInuse that it sees.
type heapWatch struct{ before, most uint64 }

func watchHeap() *heapWatch {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &heapWatch{before: m.HeapInuse, most: m.HeapInuse}
}

func (h *heapWatch) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapInuse)
}

func (h *heapWatch) want(t *testing.T, limit uint64) {
	t.Helper()
	if grown := h.most - h.before; grown > limit {
		t.Errorf("the heap grew by %d KiB, and may by %d", grown>>10, limit>>10)
	} else {
		t.Logf("the heap grew by %d KiB", grown>>10)
	}
}

// An answer of 200 MB costs no more memory than a small one, neither to decode
// nor to read its rows, twice.
func TestLargeAnswerNeedsLittleMemory(t *testing.T) {
	var block bytes.Buffer
	const blockRows = 5000
	customers(&block, 1, blockRows) // begins with a comma
	blocks := largeAnswer / block.Len()
	heap := watchHeap()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":0}`)
		for i := range blocks {
			if _, err := w.Write(block.Bytes()); err != nil {
				return
			}
			if i%4 == 0 {
				heap.look() // while the other side decodes
			}
		}
		_, _ = io.WriteString(w, `],"next":null}`)
	})
	d := define(server.URL)
	d.Response.Fields, d.Response.MaxBytes = customerFields(), 1<<30
	d.CursorPagination = &spec.CursorPagination{CursorParam: "c", NextCursorPath: "next"}
	folder := t.TempDir()
	page, err := next(t, newFetcher(t, nil), Ask{Definition: d, Spool: folder}, Position{})
	if err != nil {
		t.Fatal(err)
	}
	if want := blocks*blockRows + 1; page.Count != want || page.Bytes < largeAnswer*9/10 || !page.Last {
		t.Fatalf("got %d rows of %d, in %d bytes", page.Count, want, page.Bytes)
	}
	for range 2 {
		countRows(t, page, heap)
	}
	heap.want(t, 40<<20)
	if err := page.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the folder of the spool has %v, %v", left, err)
	}
	for _, err := range page.Rows() {
		if err == nil {
			t.Error("a closed page has rows")
		}
	}
}

func countRows(t *testing.T, page *Page, heap *heapWatch) {
	t.Helper()
	n := 0
	for row, err := range page.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(0); n > 0 {
			want = int64((n-1)%5000 + 1)
			if row[0] != want || row[6] != "Berlin" {
				t.Fatalf("row %d is %v", n, row)
			}
		}
		if n++; n%100_000 == 0 {
			heap.look()
		}
	}
	if n != page.Count {
		t.Fatalf("got %d rows of %d", n, page.Count)
	}
}

// Rows of very different sizes, some longer than what stays in memory, come
// back as they were, from the file and from the memory after it.
func TestSpooledRowsComeBackInOrder(t *testing.T) {
	var body bytes.Buffer
	body.WriteString(`{"data":[{"id":0,"x":""}`)
	sizes := []int{0}
	for i := 1; i < 60; i++ {
		size := (i * i * 977) % (400 << 10)
		if i%20 == 0 {
			size = maxRow - 100
		}
		sizes = append(sizes, size)
		body.WriteString(`,{"id":` + string(rune('0'+i%10)) + `,"x":"`)
		body.Write(bytes.Repeat([]byte{'a' + byte(i%26)}, size))
		body.WriteString(`"}`)
	}
	body.WriteString(`]}`)
	d := define("")
	d.Response.MaxBytes = 1 << 30
	d.Response.Fields = append(d.Response.Fields, spec.Field{Source: "x", Type: spec.Text})
	page := decoded(t, d, body.String())
	rows := rowsOf(t, page)
	for i, row := range rows {
		text, _ := row[1].(string)
		if row[0] != int64(i%10) || len(text) != sizes[i] || (len(text) > 0 && text[len(text)-1] != 'a'+byte(i%26)) {
			t.Fatalf("row %d is %v with %d bytes, want %d", i, row[0], len(text), sizes[i])
		}
	}
	if len(rows) != 60 || page.rows.file == nil || len(page.rows.buf) == 0 {
		t.Errorf("%d rows, %d bytes in memory", len(rows), len(page.rows.buf))
	}
	for range page.Rows() { // whoever stops early is left in peace
		break
	}
}

func TestFailedPageLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	d := define(serveText(t, `{"data":[{"id":1}`+string(bytes.Repeat([]byte(`,{"id":1}`), 900_000))+`,]`).URL)
	d.Response.MaxBytes = 1 << 30
	_, err := next(t, newFetcher(t, nil), Ask{Definition: d, Spool: folder}, Position{})
	wantCode(t, err, CodeNotJSON)
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the folder of the spool has %v, %v", left, err)
	}
}
