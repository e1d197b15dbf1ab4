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
	"github.com/pawlrun/pawl/client"
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

// trySource fetches the first pages of a definition. It writes nothing, but
// the calls count for the limit of the host.
func (a *API) trySource(ctx context.Context, in *trySourceInput) (*output[client.SourceTrial], error) {
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
	return &output[client.SourceTrial]{trialOf(&d, &tried)}, nil
}

func trialOf(d *spec.Definition, t *source.Tried) client.SourceTrial {
	out := client.SourceTrial{
		Fields: []client.SourceField{}, Rows: []client.SourceRow{}, RowsRead: t.Read, Rejects: []client.TrialReject{}, Rejected: t.Rejected, Requests: []client.TrialRequest{},
		More: t.More, Since: client.NullString(t.Since), Mark: client.NullString(t.Mark),
	}
	for _, f := range t.Fields {
		out.Fields = append(out.Fields, client.SourceField{Source: f.Source, Target: f.Target, Type: string(f.Type), Required: f.Required})
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, trialRow(d, row))
	}
	for _, r := range t.Rejects {
		out.Rejects = append(out.Rejects, client.TrialReject(r))
	}
	for _, r := range t.Requests {
		out.Requests = append(out.Requests, client.TrialRequest{URL: r.URL, Status: r.Status, Bytes: r.Bytes, Rows: r.Rows, Millis: r.Took.Milliseconds()})
	}
	return out
}

func trialRow(d *spec.Definition, row fetch.Row) client.SourceRow {
	out := client.SourceRow{}
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
func trialProblem(d *spec.Definition, t *source.Tried, e *fetch.Error) *problem {
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
