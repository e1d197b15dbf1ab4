package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
)

type overviewPage struct {
	Filter  laneFilter
	Words   []wordTab
	Kinds   []string
	Total   int       // of all kinds
	Urgent  []laneRow // what needs a person, on the first page of all
	Lanes   []laneRow
	Pager   pager
	Filters bool // something is filtered

	NoWorker string // a sentence if nobody is there to run anything

	FailedJobs int  // of those who look; on the first page of all
	MoreFailed bool // than were counted
}

// wordTab is one of the words as a filter.
type wordTab struct {
	Word   string // empty is all
	Count  int
	Href   string
	Active bool
}

const (
	lanesPerPage = 50
	urgentShown  = 5
	maxText      = 100 // characters of a text to look for
	failedRead   = 100 // failed jobs that are counted
)

func (s *Site) showOverview(w http.ResponseWriter, r *http.Request, v *visit) {
	f := s.frameFor(r, v, "overview", "Overview")
	f.Live = everyLane
	if !v.may("lanes", "read") {
		s.problem(w, r, &pawl.Error{Code: pawl.CodeForbidden, Msg: "this page needs the scope lanes:read", Hint: "Sign in with a token that has it."})
		return
	}
	body, err := s.overview(r, v)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	s.show(w, r, "overview.html", f, body)
}

func (s *Site) overview(r *http.Request, v *visit) (out overviewPage, err error) {
	query := r.URL.Query()
	out.Filter = laneFilter{Text: cut(strings.TrimSpace(query.Get("q")), maxText), Kind: query.Get("kind"), Word: run.State(query.Get("status"))}
	out.Filters = out.Filter != laneFilter{}
	there, err := s.workforce(r.Context())
	if err != nil {
		return out, err
	}
	if there.Missing {
		out.NoWorker = there.Sentence()
	}
	counts, err := s.countLanes(r.Context(), v, there)
	if err != nil {
		return out, err
	}
	out.Kinds = s.kinds()
	out.Words, out.Total = wordTabs(r, out.Filter, counts)
	var next string
	if out.Lanes, next, err = s.findLanes(r.Context(), v, out.Filter, query.Get("cursor"), lanesPerPage); err != nil {
		return out, err
	}
	out.Pager = pagerOf(r, next)
	if !out.Filters && out.Pager.First == "" {
		if out.Urgent, _, err = s.findLanes(r.Context(), v, laneFilter{Word: run.NeedsAttention}, "", urgentShown); err == nil && v.may("jobs", "read") {
			err = s.countFailedJobs(r.Context(), v, &out)
		}
	}
	return out, err
}

// countFailedJobs counts the jobs that failed for good. They belong to no lane,
// so that nothing else would tell of them.
func (s *Site) countFailedJobs(ctx context.Context, v *visit, out *overviewPage) error {
	var failed client.Page[client.Job]
	query := url.Values{"state": {client.JobFailed}, "limit": {strconv.Itoa(failedRead)}}
	if err := s.ask(ctx, v, "/api/v1/jobs", query, &failed); err != nil {
		return err
	}
	out.FailedJobs, out.MoreFailed = len(failed.Items), failed.NextCursor != ""
	return nil
}

// wordTabs are the words with how many lanes have each.
func wordTabs(r *http.Request, f laneFilter, counts stateCounts) (tabs []wordTab, total int) {
	tabs = append(tabs, wordTab{})
	words := []run.State{run.NeedsAttention, run.Running, run.Idle, run.Stopped}
	for _, word := range words {
		tabs = append(tabs, wordTab{Word: string(word)})
	}
	for kind, byWord := range counts {
		for i := range tabs {
			if f.Kind == "" || f.Kind == kind {
				tabs[i].Count += byWord[run.State(tabs[i].Word)]
			}
		}
	}
	for i := range tabs[1:] {
		total += tabs[i+1].Count
	}
	tabs[0].Count = total
	for i := range tabs {
		query := r.URL.Query()
		query.Del("cursor")
		query.Del("status")
		if tabs[i].Word != "" {
			query.Set("status", tabs[i].Word)
		}
		tabs[i].Href = pathWith("/", query)
		tabs[i].Active = string(f.Word) == tabs[i].Word
	}
	return tabs, total
}

// cut keeps the first characters of a text.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
