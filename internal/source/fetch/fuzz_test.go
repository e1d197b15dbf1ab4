package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// fuzzDefinition has a field of every type, and all that steers a fetch.
func fuzzDefinition(format spec.Format) spec.Definition {
	d := define("http://example.com/")
	d.Response.Format, d.Response.Raw = format, true
	d.Response.Fields = []spec.Field{
		{Source: "a", Type: spec.Text}, {Source: "b", Type: spec.Integer}, {Source: "c", Type: spec.Number},
		{Source: "d", Type: spec.Boolean}, {Source: "e.0.f", Type: spec.Timestamp}, {Source: "g", Type: spec.Date},
		{Source: "h", Type: spec.Object},
	}
	if format == spec.CSV {
		d.Response.Fields[4].Source = "e"
	}
	d.Response.ErrorWhen = &spec.ErrorWhen{Path: "error.code"}
	d.Incremental = &spec.Incremental{Param: "since", CursorPath: "b"}
	d.OffsetPagination = &spec.OffsetPagination{OffsetParam: "from", Limit: 2, HasMorePath: "more", TotalPath: "data.0.total"}
	return d
}

// Whatever comes in, the decoder gives a page or an Error, and what it gives as
// rows is what the standard library sees, in a form that databases can hold.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"data":[{"a":"x","b":1,"c":1.5,"d":true,"e":[{"f":"2026-01-02T03:04:05Z"}],"g":"2026-01-02","h":{"x":[1]}}],"more":true}`,
		`{"more":0,"data":[{"a":"\u0000\ud83d\ude00","b":1e3,"b":2},null,[],7],"error":{"code":null}}`,
		`{"data":{"a":" "}}`, `{"data":null}`, `[`, "a,b,c,d,e,g,h\n\"x\"\"\",1,2,0,2026-01-01,1,{}\n", "{\"a\":1}\n{\"b\":2}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, format := range []spec.Format{spec.JSON, spec.NDJSON, spec.CSV} {
			checkDecoded(t, fuzzDefinition(format), body)
		}
	})
}

func checkDecoded(t *testing.T, d spec.Definition, body []byte) {
	at := &url.URL{Scheme: "http", Host: "example.com"}
	req := newRequest(Ask{Definition: d}, at)
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: req}
	asked, err := newSignals(d)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := newMapper(d, "") // the rows are few enough for the memory
	if err != nil {
		t.Fatal(err)
	}
	page, err := readPage(Ask{Definition: d}, Position{}, &answer{resp: resp, plain: at, req: req, requests: 1}, asked, rows)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); !ok || e.Code == CodeInternal || e.Msg == "" {
			t.Fatalf("%q: %v", body, err)
		}
		return
	}
	for row, err := range page.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		checkRow(t, row)
	}
	if d.Response.Format == spec.JSON {
		checkCount(t, body, page)
	}
	if err := page.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkRow compares the typed values with those of the row as it came.
func checkRow(t *testing.T, row Row) {
	t.Helper()
	raw, ok := row[len(row)-1].(json.RawMessage)
	if !ok || !json.Valid(raw) {
		t.Fatalf("the row as it came is %q", raw)
	}
	if bytes.IndexByte(raw, 0) >= 0 || !isUTF8(raw) {
		t.Fatalf("no database holds %q", raw)
	}
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return // an array
	}
	if text, ok := members["a"].(string); ok && text != "" && row[0] != text {
		t.Fatalf("a is %q, want %q", row[0], text)
	}
	if number, ok := members["c"].(float64); ok && row[2] != number {
		t.Fatalf("c is %v, want %v", row[2], number)
	}
	if flag, ok := members["d"].(bool); ok && row[3] != flag {
		t.Fatalf("d is %v, want %v", row[3], flag)
	}
}

// checkCount compares the number of rows with what the standard library finds.
func checkCount(t *testing.T, body []byte, page *Page) {
	t.Helper()
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	if !json.Valid(body) {
		t.Fatalf("a page came of %q, which is not JSON", body)
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatalf("a page came of %q: %v", body, err)
	}
	var list []json.RawMessage
	want := 1
	if err := json.Unmarshal(document["data"], &list); err == nil {
		want = len(list)
	}
	if got := page.Count + page.RejectCount; got != want {
		t.Fatalf("%d rows came of %q, want %d", got, body, want)
	}
}
