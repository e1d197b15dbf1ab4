package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
)

type trySourceInput struct {
	CheckedHeader
	DefinitionBody
	Pages int `query:"pages" minimum:"1" maximum:"10" default:"2" doc:"How many pages to fetch at most."`
	Rows  int `query:"rows" minimum:"1" maximum:"100" default:"20" doc:"How many rows and rejects to show at most."`
}

// SourceTrial is what a definition would write.
type SourceTrial struct {
	Fields   []SourceField  `json:"fields" nullable:"false" doc:"The columns, in the order of the definition."`
	Rows     []SourceRow    `json:"rows" nullable:"false" doc:"The first rows, by the names of their columns."`
	RowsRead int            `json:"rowsRead" doc:"Rows of the pages that were fetched."`
	Rejects  []TrialReject  `json:"rejects" nullable:"false" doc:"The first rows that did not fit."`
	Rejected int            `json:"rejected" doc:"Rows that did not fit."`
	Requests []TrialRequest `json:"requests" nullable:"false" doc:"The calls that were made."`
	More     bool           `json:"more" doc:"There are more pages than were fetched."`
	Since    *string        `json:"since" doc:"The value of the incremental parameter that was sent; null if none was."`
	Mark     *string        `json:"mark" doc:"How far the incremental cursor would have come; null if there is none."`
}

// SourceField is a column of a source.
type SourceField struct {
	Source   string `json:"source" example:"quote.close" doc:"Where its value is found in a row."`
	Target   string `json:"target" example:"close" doc:"The name of the column."`
	Type     string `json:"type" enum:"text,integer,number,boolean,timestamp,date,json"`
	Required bool   `json:"required"`
}

// TrialReject is a row that did not fit.
type TrialReject struct {
	Row    int    `json:"row" doc:"Of its page, from 1."`
	Reason string `json:"reason" example:"close: \"n/a\" is no number"`
	Raw    string `json:"raw" doc:"As it came, cut if it is long."`
}

// TrialRequest is a call that was made.
type TrialRequest struct {
	URL    string `json:"url" doc:"Without the values of the query."`
	Status int    `json:"status" example:"200"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
	Millis int64  `json:"millis" doc:"How long it took."`
}

type trySourceOutput struct{ Body SourceTrial }

// trySource fetches the first pages of a definition. It writes nothing, but
// the calls count for the limit of the host.
func (a *API) trySource(ctx context.Context, in *trySourceInput) (*trySourceOutput, error) {
	d, err := in.source("test")
	if err != nil {
		return nil, err
	}
	if err := a.check(ctx, []any{d, in.Pages, in.Rows}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	tried, err := source.Try(ctx, a.cfg.Fetcher, d, source.TryLimits{Pages: in.Pages, Rows: in.Rows})
	if e, ok := errors.AsType[*fetch.Error](err); ok && e.Class != pawl.ClassInternal {
		return nil, trialProblem(&d, &tried, e)
	}
	if err != nil {
		return nil, err
	}
	return &trySourceOutput{trialOf(&d, &tried)}, nil
}

func trialOf(d *spec.Definition, t *source.Tried) SourceTrial {
	out := SourceTrial{
		Fields: []SourceField{}, Rows: []SourceRow{}, RowsRead: t.Read, Rejects: []TrialReject{}, Rejected: t.Rejected, Requests: []TrialRequest{},
		More: t.More, Since: orNull(t.Since), Mark: orNull(t.Mark),
	}
	for _, f := range t.Fields {
		out.Fields = append(out.Fields, SourceField{f.Source, f.Target, string(f.Type), f.Required})
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, trialRow(d, row))
	}
	for _, r := range t.Rejects {
		out.Rejects = append(out.Rejects, TrialReject(r))
	}
	for _, r := range t.Requests {
		out.Requests = append(out.Requests, TrialRequest{r.URL, r.Status, r.Bytes, r.Rows, r.Took.Milliseconds()})
	}
	return out
}

func trialRow(d *spec.Definition, row fetch.Row) SourceRow {
	out := SourceRow{}
	for i, v := range row {
		if i == len(d.Response.Fields) { // kept as it came
			out["_raw"] = v
			break
		}
		f := d.Response.Fields[i]
		if at, ok := v.(time.Time); ok && f.Type == spec.Date {
			v = at.Format(time.DateOnly)
		}
		out[f.Target] = valueAnswer(v)
	}
	return out
}

// trialProblem tells why a page could not be had, and what was tried. Its codes
// begin with fetch_: they are about the other side, and not about this request.
func trialProblem(d *spec.Definition, t *source.Tried, e *fetch.Error) *Problem {
	status := http.StatusUnprocessableEntity
	if e.Class == pawl.ClassTransient {
		status = http.StatusServiceUnavailable
	}
	hint := e.Hint
	if hint == "" {
		hint = "Check the definition against what the other side documents."
	}
	p := newProblem(status, "fetch_"+e.Code, triedWords(d, t, e.Msg), hint)
	p.Title = "The fetch did not work"
	if wait := max(e.RetryAfter, time.Until(e.Until)); status == http.StatusServiceUnavailable && wait > 0 {
		p.header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	return p
}

// triedWords says which page could not be had, why, and which ones could.
func triedWords(d *spec.Definition, t *source.Tried, why string) string {
	if len(t.Requests) == 0 {
		address := d.Host()
		if u, err := url.Parse(d.URL); err == nil {
			address = outbound.Redact(u)
		}
		return fmt.Sprintf("the first page, GET %s, could not be had: %s", address, why)
	}
	var done []string
	for i, r := range t.Requests {
		done = append(done, fmt.Sprintf("page %d, GET %s (status %d, %d rows)", i+1, r.URL, r.Status, r.Rows))
	}
	return fmt.Sprintf("page %d could not be had: %s. Before it came %s", len(done)+1, strings.TrimSuffix(why, "."), strings.Join(done, "; "))
}
