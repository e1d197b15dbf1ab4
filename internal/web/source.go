package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// sourceHead is the part that all pages about a source have: its word and
// sentence, its actions, how fresh its rows are, and how far it has come.
type sourceHead struct {
	client.Source
	Tab      string
	Base     string // the address of its first page
	CanWrite bool
}

// Attention reports whether the card for a person is shown.
func (h sourceHead) Attention() bool { return h.Status == "Needs attention" }

// Fetching is the run that is active, or nil.
func (h sourceHead) Fetching() *client.SourceRun {
	if h.LastRun != nil && h.LastRun.Status == "active" {
		return h.LastRun
	}
	return nil
}

// written is how many rows a run changed in the table.
func written(p *client.RunProgress) int64 { return p.RowsNew + p.RowsChanged }

func apiSource(r *http.Request, below string) string {
	return "/api/v1/sources/" + segment(r, "name") + below
}

// showSourceTab shows a page about a source: read fills its own part.
func (s *Site) showSourceTab(w http.ResponseWriter, r *http.Request, v *visit, tab, title string, read func(h *sourceHead) (any, error)) {
	h := &sourceHead{Tab: tab, Base: lanePath(string(pawl.KindSource), r.PathValue("name")), CanWrite: v.may("sources", "write")}
	if err := s.ask(r.Context(), v, apiSource(r, ""), nil, &h.Source); err != nil {
		s.problem(w, r, err)
		return
	}
	body, err := read(h)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "overview", h.Name+title)
	f.Live = string(pawl.KindSource) + ":" + h.Name
	s.show(w, r, "source_"+tab+".html", f, body)
}

type sourcePage struct {
	Head    *sourceHead
	Chart   []runView // the oldest first
	Columns []string
	Rows    [][]string
	NoRows  string // why rows cannot be shown
}

const (
	sampleRows   = 5
	chartRuns    = 100
	rowsPerPage  = 50
	rejectsShown = 25
)

// showSource is what came of it: rows over time, some of them, and why it runs
// or does not.
func (s *Site) showSource(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showSourceTab(w, r, v, "now", "", func(h *sourceHead) (any, error) {
		out := &sourcePage{Head: h}
		if err := s.addChart(r, v, out); err != nil {
			return nil, err
		}
		rows, _, err := s.rowsOf(r, v, h, url.Values{"limit": {strconv.Itoa(sampleRows)}})
		if p, refused := err.(*refusal); refused && p.Status < http.StatusInternalServerError { //nolint:errorlint // the API's own
			out.NoRows = p.Detail
			return out, nil
		}
		out.Columns, out.Rows = rows.own()
		return out, err
	})
}

// addChart adds the runs that wrote something, or could have.
func (s *Site) addChart(r *http.Request, v *visit, out *sourcePage) error {
	if !v.may("runs", "read") {
		return nil
	}
	var list client.Page[runView]
	query := url.Values{"kind": {string(pawl.KindSource)}, "lane": {out.Head.Name}, "limit": {strconv.Itoa(chartRuns)}}
	if err := s.ask(r.Context(), v, "/api/v1/runs", query, &list); err != nil {
		return err
	}
	for _, one := range slices.Backward(list.Items) {
		if one.Progress != nil && !one.StartedAt.IsZero() {
			out.Chart = append(out.Chart, one)
		}
	}
	return nil
}

type sourceRowsPage struct {
	Head    *sourceHead
	Columns []string
	Rows    [][]string
	Defined int // how many of the columns the definition has; the others are Pawl's
	Pager   pager
}

// own are the rows without the columns that Pawl adds.
func (p *sourceRowsPage) own() (columns []string, rows [][]string) {
	for _, row := range p.Rows {
		rows = append(rows, row[:p.Defined])
	}
	return p.Columns[:p.Defined], rows
}

func (s *Site) showSourceRows(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showSourceTab(w, r, v, "rows", " · rows", func(h *sourceHead) (any, error) {
		out, next, err := s.rowsOf(r, v, h, listQuery(r, rowsPerPage))
		out.Pager = pagerOf(r, next)
		return out, err
	})
}

// rowsOf reads rows as texts, with the columns in the order of the definition.
func (s *Site) rowsOf(r *http.Request, v *visit, h *sourceHead, query url.Values) (out sourceRowsPage, next string, err error) {
	out.Head = h
	var list client.Page[map[string]json.RawMessage]
	if err := s.ask(r.Context(), v, apiSource(r, "/rows"), query, &list); err != nil {
		return out, "", err
	}
	out.Columns, out.Defined = columnsOf(h.Definition, list.Items)
	for _, row := range list.Items {
		cells := make([]string, len(out.Columns))
		for i, column := range out.Columns {
			cells[i] = cellText(row[column])
		}
		out.Rows = append(out.Rows, cells)
	}
	return out, string(list.NextCursor), nil
}

// columnsOf are the columns of a definition, then those that the rows have
// beside them; defined is how many there are of the first.
func columnsOf(definition json.RawMessage, rows []map[string]json.RawMessage) (out []string, defined int) {
	var d struct {
		Response struct {
			Fields []struct {
				Target string `json:"target"`
			} `json:"fields"`
		} `json:"response"`
	}
	_ = json.Unmarshal(definition, &d) // without it the columns are in another order
	var others []string
	for _, f := range d.Response.Fields {
		out = append(out, f.Target)
	}
	for _, row := range rows {
		for column := range row {
			if !slices.Contains(out, column) && !slices.Contains(others, column) {
				others = append(others, column)
			}
		}
	}
	slices.Sort(others)
	return append(out, others...), len(d.Response.Fields)
}

// cellText is a value as a table shows it: texts without their quotes.
func cellText(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

type rejectsPage struct {
	Head    *sourceHead
	Rejects []client.Reject
	Pager   pager
}

func (s *Site) showSourceRejects(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showSourceTab(w, r, v, "rejects", " · rejected rows", func(h *sourceHead) (any, error) {
		var list client.Page[client.Reject]
		err := s.ask(r.Context(), v, apiSource(r, "/rejects"), listQuery(r, rejectsShown), &list)
		return rejectsPage{h, list.Items, pagerOf(r, list.NextCursor)}, err
	})
}

type sourceRunsPage struct {
	Head  *sourceHead
	Runs  []runView
	Pager pager
}

func (s *Site) showSourceRuns(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showSourceTab(w, r, v, "runs", " · runs", func(h *sourceHead) (any, error) {
		list, err := s.runsOf(r, v, pawl.KindSource, h.Name)
		return sourceRunsPage{h, list.Items, pagerOf(r, list.NextCursor)}, err
	})
}

func (s *Site) runSource(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiSource(r, "/run"), nil, "Run requested.")
}

func (s *Site) pauseSource(w http.ResponseWriter, r *http.Request, v *visit) {
	s.pause(w, r, v, apiSource(r, "/pause"), "Paused. Nothing more will be fetched.")
}

func (s *Site) resumeSource(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiSource(r, "/resume"), nil, "Resumed.")
}

// resetSource forgets failures, and with all also how far it has come.
func (s *Site) resetSource(w http.ResponseWriter, r *http.Request, v *visit) {
	body := map[string]any{}
	done := "Failures cleared. It runs again now."
	if r.FormValue("all") != "" {
		body["all"] = true
		done = "Reset. It fetches everything again."
	}
	s.change(w, r, v, apiSource(r, "/reset"), body, done)
}
