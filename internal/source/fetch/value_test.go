package fetch

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at.UTC()
}

// A value becomes what its type says, exactly, or its row is rejected with the
// reason.
func TestValuesFitOrAreRejected(t *testing.T) {
	noon := instant("2026-03-04T12:00:00Z")
	day := instant("2026-03-04T00:00:00Z")
	tests := []struct {
		t    spec.Type
		json string
		want any    // if it fits
		why  string // within the reason, if not
	}{
		{spec.Text, `"plain"`, "plain", ""},
		{spec.Text, `"a\u00e9\n\ud83d\ude00\/"`, "aé\n😀/", ""},
		{spec.Text, `""`, "", ""},
		{spec.Text, `12.50`, "12.50", ""},
		{spec.Text, `true`, "true", ""},
		{spec.Text, `null`, nil, ""},
		{spec.Text, `{"a":1}`, nil, "is an object"},
		{spec.Text, `[1]`, nil, "is an array"},
		{spec.Text, `"a\u0000b"`, nil, "NUL"},
		{spec.Text, "\"a\xffb\"", nil, "UTF-8"},
		{spec.Text, `"\ud800"`, nil, "UTF-8"},

		{spec.Integer, `0`, int64(0), ""},
		{spec.Integer, `-12`, int64(-12), ""},
		{spec.Integer, `1.0`, int64(1), ""},
		{spec.Integer, `1e3`, int64(1000), ""},
		{spec.Integer, `-1.50e1`, int64(-15), ""},
		{spec.Integer, `0e999999`, int64(0), ""},
		{spec.Integer, `"42"`, int64(42), ""},
		{spec.Integer, `" 007 "`, int64(7), ""},
		{spec.Integer, `9223372036854775807`, int64(math.MaxInt64), ""},
		{spec.Integer, `-9223372036854775808`, int64(math.MinInt64), ""},
		{spec.Integer, `9223372036854775807.0`, int64(math.MaxInt64), ""},
		{spec.Integer, `9223372036854775808`, nil, "too large for an integer"},
		{spec.Integer, `1e400`, nil, "too large for an integer"},
		{spec.Integer, `1e99999999999999999999`, nil, "is not an integer"},
		{spec.Integer, `1.5`, nil, "is not an integer"},
		{spec.Integer, `1e-1`, nil, "is not an integer"},
		{spec.Integer, `"12x"`, nil, "is not an integer"},
		{spec.Integer, `"1-2"`, nil, "is not an integer"},
		{spec.Integer, `""`, nil, "is not an integer"},
		{spec.Integer, `true`, nil, "is not an integer"},

		{spec.Number, `1.25`, 1.25, ""},
		{spec.Number, `"1e3"`, 1000.0, ""},
		{spec.Number, `-0.0`, math.Copysign(0, -1), ""},
		{spec.Number, `1e-400`, 0.0, ""},
		{spec.Number, `1e400`, nil, "too large for a number"},
		{spec.Number, `"inf"`, nil, "is not a number"},
		{spec.Number, `"NaN"`, nil, "is not a number"},
		{spec.Number, `"0x1p4"`, nil, "is not a number"},
		{spec.Number, `"1_000"`, nil, "is not a number"},
		{spec.Number, `false`, nil, "is not a number"},

		{spec.Boolean, `true`, true, ""},
		{spec.Boolean, `false`, false, ""},
		{spec.Boolean, `"TRUE"`, true, ""},
		{spec.Boolean, `0`, false, ""},
		{spec.Boolean, `1`, true, ""},
		{spec.Boolean, `2`, nil, "is not a boolean"},
		{spec.Boolean, `"yes"`, nil, "is not a boolean"},

		{spec.Timestamp, `"2026-03-04T12:00:00Z"`, noon, ""},
		{spec.Timestamp, `"2026-03-04T14:00:00+02:00"`, noon, ""},
		{spec.Timestamp, `"2026-03-04T14:00:00.000+0200"`, noon, ""},
		{spec.Timestamp, `"2026-03-04 12:00:00"`, noon, ""},
		{spec.Timestamp, `"2026-03-04 12:00:00 UTC"`, noon, ""},
		{spec.Timestamp, `"2026-03-04 13:00:00+01"`, noon, ""},
		{spec.Timestamp, `"2026-03-04t12:00z"`, noon, ""},
		{spec.Timestamp, `"2026-03-04T12:00:00.123456789Z"`, instant("2026-03-04T12:00:00.123456789Z"), ""},
		{spec.Timestamp, `"2026-03-04"`, day, ""},
		{spec.Timestamp, `"20260304"`, day, ""},
		{spec.Timestamp, `1772625600`, noon, ""},
		{spec.Timestamp, `1772625600000`, noon, ""},
		{spec.Timestamp, `1772625600.5`, instant("2026-03-04T12:00:00.5Z"), ""},
		{spec.Timestamp, `"1772625600"`, noon, ""},
		{spec.Timestamp, `-1`, instant("1969-12-31T23:59:59Z"), ""},
		{spec.Timestamp, `1.7726256e9`, noon, ""},
		{spec.Timestamp, `1e400`, nil, "is not a timestamp"},
		{spec.Timestamp, `9e17`, nil, "is not a timestamp"},
		{spec.Timestamp, `"2026-13-04T12:00:00Z"`, nil, "is not a timestamp"},
		{spec.Timestamp, `"2026-02-30"`, nil, "is not a timestamp"},
		{spec.Timestamp, `"0000-01-01T00:00:00Z"`, nil, "is not a timestamp"},
		{spec.Timestamp, `"9999-12-31T23:59:59-10:00"`, nil, "is not a timestamp"},
		{spec.Timestamp, `"yesterday"`, nil, "is not a timestamp"},
		{spec.Timestamp, `"2026"`, nil, "is not a timestamp"},
		{spec.Timestamp, `true`, nil, "is not a timestamp"},

		{spec.Date, `"2026-03-04"`, day, ""},
		{spec.Date, `"2026-03-04T23:30:00-08:00"`, day, ""},
		{spec.Date, `1772625600`, day, ""},
		{spec.Date, `"04.03.2026"`, nil, "is not a date"},

		{spec.Object, `{"a":[1,"x"]}`, json.RawMessage(`{"a":[1,"x"]}`), ""},
		{spec.Object, `"text"`, json.RawMessage(`"text"`), ""},
		{spec.Object, `false`, json.RawMessage(`false`), ""},
		{spec.Object, `null`, nil, ""},
		{spec.Object, `{"a":"\\u0000"}`, json.RawMessage(`{"a":"\\u0000"}`), ""},
		{spec.Object, `{"a":"\u0000"}`, nil, "NUL"},
		{spec.Object, `{"a":"\ud800"}`, nil, "UTF-8"},
		{spec.Object, "[\"\xff\"]", nil, "UTF-8"},
		{spec.Object, `[1e999999]`, nil, "too large"},
		{spec.Object, strings.Repeat("[", 600) + strings.Repeat("]", 600), nil, "too deeply"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %.40q", test.t, test.json), func(t *testing.T) {
			d := define("")
			d.Response.Fields = []spec.Field{{Source: "v", Type: test.t}}
			page := decoded(t, d, `{"data":[{"v":`+test.json+`}]}`)
			if test.why != "" {
				if page.RejectCount != 1 || page.Count != 0 || !strings.Contains(page.Rejects[0].Reason, test.why) {
					t.Fatalf("got %d rows, rejects %+v", page.Count, page.Rejects)
				}
				return
			}
			if page.Count != 1 {
				t.Fatalf("it was rejected: %+v", page.Rejects)
			}
			if got := rowsOf(t, page)[0][0]; !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %T %v, want %T %v", got, got, test.want, test.want)
			}
		})
	}
}

// decoded fetches one page with the given body.
func decoded(t *testing.T, d spec.Definition, body string) *Page {
	t.Helper()
	d.URL = serveText(t, body).URL
	return one(t, d)
}

// One bad row never loses a page.
func TestRowsThatDoNotFitAreRejectedAlone(t *testing.T) {
	d := define("")
	d.Response.Fields = []spec.Field{
		{Source: "id", Type: spec.Integer, Required: true},
		{Source: "a.b", Type: spec.Text},
		{Source: "list.1", Type: spec.Text},
	}
	page := decoded(t, d, "\xEF\xBB\xBF"+` {"data" : [ {"id":1,"a":{"b":"x","c":[{"b":1}]},"list":[1,"two",3]},
		{"a":{"b":"x"}}, {"id":null}, {"id":2,"id":3}, 7, null, "x", {"id":"4" , "a":5, "list":{"1":"named"}},
		{"\u0069d":5,"a":{"b":"\ud83d"}}, {"id":6,"other":{"id":9},"a":{"b":"ok"},"list":[]}, [], {} ] }`)
	want := []Row{{int64(1), "x", "two"}, {int64(4), nil, "named"}, {int64(6), "ok", nil}}
	if got := rowsOf(t, page); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	reasons := []struct {
		row int
		why string
	}{
		{2, "id is missing"}, {3, "id is missing"}, {4, `the name "id" is there twice`}, {5, "neither an object"},
		{6, "neither an object"}, {7, "neither an object"}, {9, "a.b is not valid UTF-8"}, {11, "id is missing"}, {12, "id is missing"},
	}
	if len(page.Rejects) != len(reasons) || page.RejectCount != len(reasons) {
		t.Fatalf("got rejects %+v", page.Rejects)
	}
	for i, r := range reasons {
		if got := page.Rejects[i]; got.Row != r.row || !strings.Contains(got.Reason, r.why) {
			t.Errorf("got %+v, want row %d: %s", got, r.row, r.why)
		}
	}
	if page.Rejects[0].Raw != `{"a":{"b":"x"}}` {
		t.Errorf("the row came as %s", page.Rejects[0].Raw)
	}
}

func TestRejectsAreBoundedAndStorable(t *testing.T) {
	d := define("")
	long := `{"id":"` + strings.Repeat("é", 4000) + `"}`
	page := decoded(t, d, `{"data":[`+strings.Repeat("{\"id\":\"\xff\"},", 1500)+long+`]}`)
	if page.RejectCount != 1501 || len(page.Rejects) != maxRejects || page.Rejects[0].Raw != "{\"id\":\"\uFFFD\"}" {
		t.Errorf("%d rejects, %d kept, first %+v", page.RejectCount, len(page.Rejects), page.Rejects[0])
	}
	page = decoded(t, d, `{"data":[`+long+`]}`)
	if raw := page.Rejects[0].Raw; len(raw) > maxRejectRaw || !strings.HasPrefix(long, raw[:4000]) || len(page.Rejects[0].Reason) > 500 {
		t.Errorf("%d bytes are kept, with the reason %s", len(raw), page.Rejects[0].Reason)
	}
}

func TestShapesOfData(t *testing.T) {
	item := []spec.Field{{Source: "id", Type: spec.Integer}}
	tests := []struct {
		name, path, body string
		fields           []spec.Field
		want             []Row
	}{
		{"the root is an array", "", `[{"id":1},{"id":2}]`, item, []Row{{int64(1)}, {int64(2)}}},
		{"the root by a dot", ".", `[{"id":1}]`, item, []Row{{int64(1)}}},
		{"an object is one row", "data", `{"data":{"id":1}}`, item, []Row{{int64(1)}}},
		{"the root is one row", "", `{"id":1}`, item, []Row{{int64(1)}}},
		{"deep", "a.1.b", `{"x":[{}],"a":[0,{"b":[{"id":1}]},2]}`, item, []Row{{int64(1)}}},
		{"a name with a dot", `a\.b`, `{"a":{"b":[]},"a.b":[{"id":1}]}`, item, []Row{{int64(1)}}},
		{"rows are arrays", "", `[[10,"x"],[20,"y"]]`, []spec.Field{{Source: "1", Type: spec.Text}, {Source: "0", Type: spec.Number}}, []Row{{"x", 10.0}, {"y", 20.0}}},
		{"rows are scalars", "", `["x",7]`, []spec.Field{{Source: ".", Type: spec.Text}}, []Row{{"x"}, {"7"}}},
		{"nothing", "data", `{"data":[]}`, item, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := define("")
			d.Response.DataPath, d.Response.Fields = test.path, test.fields
			if got := rowsOf(t, decoded(t, d, test.body)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRawRowsComeAsTheyWere(t *testing.T) {
	d := define("")
	d.Response.Raw = true
	page := decoded(t, d, `{"data":[{"id":1, "x":[ 2 ]},{"id":2,"x":"\u0000"}]}`)
	want := []Row{{int64(1), json.RawMessage(`{"id":1, "x":[ 2 ]}`)}}
	if got := rowsOf(t, page); !reflect.DeepEqual(got, want) || page.RejectCount != 1 {
		t.Errorf("got %s, rejects %+v", got, page.Rejects)
	}
}

// The steering values of an answer that is itself one row are found in it.
func TestSignalsWithinARow(t *testing.T) {
	d := define("")
	d.Response.DataPath = ""
	d.CursorPagination = &spec.CursorPagination{CursorParam: "c", NextCursorPath: "meta.next"}
	page := decoded(t, d, `{"id":1,"meta":{"next":"n"}}`)
	if page.Last || page.Next.Cursor != "n" || page.Count != 1 {
		t.Errorf("got %+v", page)
	}
}

func TestManyFieldsAreFoundByName(t *testing.T) {
	d := define("")
	d.Response.Fields = nil
	var members []string
	for i := range 40 {
		d.Response.Fields = append(d.Response.Fields, spec.Field{Source: fmt.Sprintf("f%d", i), Type: spec.Integer})
		members = append([]string{fmt.Sprintf(`"f%d":%d,"g%d":0`, i, i, i)}, members...) // the other way round
	}
	row := rowsOf(t, decoded(t, d, `{"data":[{`+strings.Join(members, ",")+`}]}`))[0]
	for i, v := range row {
		if v != int64(i) {
			t.Errorf("f%d is %v", i, v)
		}
	}
}
