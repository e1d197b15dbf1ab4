package fetch

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/source/spec"
)

func defineTable() spec.Definition {
	d := define("")
	d.Response.Format, d.Response.DataPath = spec.CSV, ""
	d.Response.Fields = []spec.Field{
		{Source: "id", Type: spec.Integer, Required: true},
		{Source: "full.name", Type: spec.Text},
		{Source: "paid", Type: spec.Boolean},
	}
	return d
}

func TestTablesAreReadByTheirHeader(t *testing.T) {
	d := defineTable()
	d.Incremental = &spec.Incremental{Param: "since", CursorPath: "id"}
	page := decoded(t, d, "\xEF\xBB\xBFpaid, id ,other,full.name\r\n"+
		"true,1,x,\"Ann \"\"A\"\" B,\nC\"\r\n"+
		"\n"+
		",2,x,\n"+ // empty cells are null
		"1,3\n"+ // short
		"1,4,x,y,z\n"+ // long
		"1,five,x,y\n"+
		"0,,x,y\n"+
		"1,6,x,a\x00b\n"+
		"1,7,x,\xff\n"+
		"1,8,x,a\"b\n"+ // a quote within a cell
		"0,10,x,last")
	want := []Row{{int64(1), "Ann \"A\" B,\nC", true}, {int64(2), nil, nil}, {int64(10), "last", false}}
	if got := rowsOf(t, page); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if page.Mark != "10" {
		t.Errorf("the mark is %q", page.Mark)
	}
	reasons := []string{"has 2 columns", "has 5 columns", "id \"five\" is not an integer", "id is missing", "NUL", "UTF-8", "quotes"}
	if len(page.Rejects) != len(reasons) {
		t.Fatalf("got %+v", page.Rejects)
	}
	for i, why := range reasons {
		if !strings.Contains(page.Rejects[i].Reason, why) || page.Rejects[i].Row != i+3 {
			t.Errorf("got %+v, want row %d: %s", page.Rejects[i], i+3, why)
		}
	}
}

func TestRawRowsOfTablesAreObjects(t *testing.T) {
	d := defineTable()
	d.Response.Raw = true
	page := decoded(t, d, "id,full.name,paid\n1,\"a \"\"b\"\"\",0\n2,x\x00,1\n")
	rows := rowsOf(t, page)
	if len(rows) != 1 || string(rows[0][3].(json.RawMessage)) != `{"id":"1","full.name":"a \"b\"","paid":"0"}` {
		t.Errorf("got %s, rejects %+v", rows, page.Rejects)
	}
}

func TestBadTablesAreErrors(t *testing.T) {
	for name, test := range map[string]struct{ body, code, text string }{
		"nothing":            {"", CodeNotCSV, "empty"},
		"a page for people":  {"<html>", CodeNotCSV, "<html>"},
		"no such column":     {"id,name,paid\n1,x,1\n", CodeBadPath, `no column "full.name" (it has "id, name, paid")`},
		"a column twice":     {"id,id,full.name,paid\n", CodeBadPath, `"id" twice`},
		"a broken header":    {"id,\"full.name,paid\n1,2,3\n", CodeNotCSV, "does not name columns"},
		"cut off in a quote": {"id,full.name,paid\n1,\"abc", CodeTruncated, "too early"},
		"an open quote":      {"id,full.name,paid\n1,\"" + strings.Repeat("x", 5<<20), CodeTooLarge, "4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			d := defineTable()
			d.URL = serveText(t, test.body).URL
			_, err := next(t, newFetcher(t, nil), Ask{Definition: d}, Position{})
			if e := mustFail(t, err, test.code); !strings.Contains(e.Msg, test.text) {
				t.Errorf("the message is %s", e.Msg)
			}
		})
	}
}

func TestTablesPageByTheirRows(t *testing.T) {
	d := defineTable()
	d.OffsetPagination = &spec.OffsetPagination{OffsetParam: "from", Limit: 2}
	page := decoded(t, d, "id,full.name,paid\n1,a,1\n2,b,1\n")
	if page.Last || page.Next.Offset != 2 {
		t.Errorf("got %+v", page)
	}
}

func defineLines() spec.Definition {
	d := define("")
	d.Response.Format, d.Response.DataPath = spec.NDJSON, ""
	return d
}

func TestLinesAreRows(t *testing.T) {
	long := `{"x":"` + strings.Repeat("x", 300<<10) + `","id":3}` // longer than the buffer
	page := decoded(t, defineLines(), "{\"id\":1}\r\n\n{\"id\":2}\n"+long+"\n{\"id\":}\n{\"id\":4} {\"id\":5}\n7\n{\"id\":6}")
	want := []Row{{int64(1)}, {int64(2)}, {int64(3)}, {int64(6)}}
	if got := rowsOf(t, page); !reflect.DeepEqual(got, want) || page.RejectCount != 3 {
		t.Errorf("got %v, rejects %+v", got, page.Rejects)
	}
	if empty := decoded(t, defineLines(), ""); empty.Count != 0 || !empty.Last {
		t.Errorf("got %+v", empty)
	}
}

func TestBadLinesAreErrors(t *testing.T) {
	for name, test := range map[string]struct{ body, code string }{
		"a page for people":  {"<html>\n", CodeNotJSON},
		"something else":     {"{not json}\n{\"id\":1}\n", CodeNotJSON},
		"cut off":            {"{\"id\":1}\n{\"id\":2", CodeTruncated},
		"a line without end": {"{\"id\":1}\n\"" + strings.Repeat("x", 5<<20), CodeTooLarge},
		"an error in a line": {"{\"id\":1}\n{\"error\":\"no\"}\n", CodeErrorInBody},
	} {
		t.Run(name, func(t *testing.T) {
			d := defineLines()
			d.URL = serveText(t, test.body).URL
			d.Response.ErrorWhen = &spec.ErrorWhen{Path: "error"}
			_, err := next(t, newFetcher(t, nil), Ask{Definition: d}, Position{})
			wantCode(t, err, test.code)
		})
	}
}
