package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// laneRow is a lane as the overview shows it (A-143..A-147).
type laneRow struct {
	Kind     string
	Name     string
	Href     string
	Word     string
	Sentence string // what is the matter; empty if nothing is
	Schedule string
	LastAt   time.Time
	LastText string
	NextAt   time.Time
	Pending  int
}

// laneKind is one kind of lane, for the overview.
type laneKind struct {
	kind pawl.Kind
	// find reads up to limit lanes that fit, by name, those after the given
	// one, and the name with which to go on, empty at the end.
	find func(ctx context.Context, f laneFilter, after string, limit int) (rows []laneRow, next string, err error)
	// count counts the lanes by their word.
	count func(ctx context.Context) (map[run.Word]int, error)
}

// laneKinds are the kinds in the order of the overview.
func (s *Site) laneKinds() []laneKind {
	return []laneKind{{pawl.KindWorkflow, s.findWorkflowLanes, s.countWorkflowLanes}}
}

func (s *Site) findWorkflowLanes(ctx context.Context, f laneFilter, after string, limit int) (rows []laneRow, next string, err error) {
	if !f.any() {
		lanes, next, err := s.cfg.Workflows.Lanes(ctx, after, limit)
		for i := range lanes {
			rows = append(rows, workflowRow(&lanes[i]))
		}
		return rows, next, err
	}
	var names []string
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		names, err = findWorkflows(ctx, tx, f, after, limit+1)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(names) > limit {
		names = names[:limit]
		next = names[limit-1]
	}
	for _, name := range names {
		d, err := s.cfg.Workflows.Describe(ctx, name)
		switch {
		case errors.Is(err, pawl.ErrNotFound): // deleted meanwhile
		case err != nil:
			return nil, "", err
		case f.Word == "" || d.Word == f.Word:
			rows = append(rows, workflowRow(&d.Lane))
		}
	}
	return rows, next, nil
}

func (s *Site) countWorkflowLanes(ctx context.Context) (counts map[run.Word]int, err error) {
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		counts, err = countWorkflows(ctx, tx)
		return err
	})
	return counts, err
}

func workflowRow(l *workflow.Lane) laneRow {
	return laneRow{
		Kind: string(pawl.KindWorkflow), Name: l.Name, Href: "/workflows/" + url.PathEscape(l.Name), Word: string(l.Word), Sentence: l.Sentence,
		Schedule: l.Schedule, LastAt: l.LastAt, LastText: l.LastText, NextAt: l.NextAt, Pending: l.Pending,
	}
}

// laneCounts keeps what was counted for a moment, because every open overview
// asks for it whenever something moves.
type laneCounts struct {
	mu     sync.Mutex
	counts map[string]map[run.Word]int // by kind; guarded by mu
	until  time.Time                   // guarded by mu
}

// countsKept is for how long at least; what takes long to count is kept fifty
// times as long as that took, so that counting never costs much.
const (
	countsKept  = 3 * time.Second
	countsShare = 50
)

func (s *Site) countLanes(ctx context.Context, now time.Time) (map[string]map[run.Word]int, error) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	if now.Before(s.counts.until) {
		return s.counts.counts, nil
	}
	begun := time.Now()
	counts := map[string]map[run.Word]int{}
	for _, k := range s.laneKinds() {
		n, err := k.count(ctx)
		if err != nil {
			return nil, err
		}
		counts[string(k.kind)] = n
	}
	s.counts.counts, s.counts.until = counts, time.Now().Add(max(countsKept, countsShare*time.Since(begun)))
	return counts, nil
}

type overviewPage struct {
	Filter  laneFilter
	Words   []wordTab
	Kinds   []string
	Total   int
	Urgent  []laneRow // what needs a person, on the first page of all
	Lanes   []laneRow
	Pager   pager
	Filters bool // something is filtered
}

// wordTab is one of the four words as a filter.
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
	out.Filter = laneFilter{Text: cut(strings.TrimSpace(query.Get("q")), maxText), Kind: query.Get("kind"), Word: run.Word(query.Get("status"))}
	out.Filters = out.Filter != laneFilter{}
	counts, err := s.countLanes(r.Context(), v.now)
	if err != nil {
		return out, err
	}
	for _, k := range s.laneKinds() {
		out.Kinds = append(out.Kinds, string(k.kind))
	}
	out.Words, out.Total = wordTabs(r, out.Filter, counts)
	var next string
	if out.Lanes, next, err = s.findLanes(r.Context(), out.Filter, query.Get("cursor"), lanesPerPage); err != nil {
		return out, err
	}
	out.Pager = pagerOf(r, next)
	if !out.Filters && out.Pager.First == "" {
		out.Urgent, _, err = s.findLanes(r.Context(), laneFilter{Word: run.NeedsAttention}, "", urgentShown)
	}
	return out, err
}

// findLanes goes through the kinds, and in each by name. A cursor is the kind
// and the name of the last lane of a page.
func (s *Site) findLanes(ctx context.Context, f laneFilter, cursor string, limit int) (rows []laneRow, next string, err error) {
	from, after, _ := strings.Cut(cursor, ":")
	begun := cursor == ""
	for _, k := range s.laneKinds() {
		if !begun && string(k.kind) != from {
			continue
		}
		begun = true
		if f.Kind != "" && f.Kind != string(k.kind) {
			after = ""
			continue
		}
		if len(rows) >= limit { // the page is full, and there is another kind
			return rows, string(k.kind) + ":", nil
		}
		found, more, err := k.find(ctx, f, after, limit-len(rows))
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, found...)
		if more != "" {
			return rows, string(k.kind) + ":" + more, nil
		}
		after = ""
	}
	return rows, "", nil
}

// wordTabs are the four words with how many lanes have each.
func wordTabs(r *http.Request, f laneFilter, counts map[string]map[run.Word]int) (tabs []wordTab, total int) {
	tabs = append(tabs, wordTab{})
	for _, word := range []run.Word{run.NeedsAttention, run.Running, run.Idle, run.Stopped} {
		tabs = append(tabs, wordTab{Word: string(word)})
	}
	for kind, byWord := range counts {
		for i := range tabs {
			if f.Kind == "" || f.Kind == kind {
				tabs[i].Count += byWord[run.Word(tabs[i].Word)]
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
