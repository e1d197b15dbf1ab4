package web

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// laneRow is a lane as the overview shows it (A-143..A-147).
type laneRow struct {
	Kind     string
	Name     string
	ID       string
	Href     string
	Word     string
	Sentence string // what is the matter; empty if nothing is
	Schedule string
	LastAt   time.Time
	LastText string
	NextAt   time.Time
	Pending  int
}

// Key names a lane among all, for the page.
func (l laneRow) Key() string {
	if l.Kind == string(pawl.KindSchedule) {
		return l.Kind + "-" + l.ID
	}
	return l.Kind + "-" + l.Name
}

// laneFilter picks lanes; empty fields pick all.
type laneFilter struct {
	Text string // part of the name
	Kind string
	Word run.State

	NoWorker bool // nobody is there to run anything
}

func (f laneFilter) any() bool { return f.Text != "" || f.Word != "" }

// stored is the filter for what SQL can tell. It knows nothing of workers: with
// none, everything may need attention.
func (f laneFilter) stored() store.LaneFilter {
	if f.NoWorker && f.Word == run.NeedsAttention {
		return store.LaneFilter{Text: f.Text}
	}
	return store.LaneFilter{Text: f.Text, Word: string(f.Word)}
}

// laneKind is one kind of lane, for the overview.
type laneKind struct {
	kind pawl.Kind
	// find reads up to limit lanes that fit and that the owner may see, by name,
	// those after the given place, and the place with which to go on, empty at
	// the end. An empty owner is everybody.
	find func(ctx context.Context, owner string, f laneFilter, after string, limit int) (rows []laneRow, next string, err error)
	// count counts the lanes by their word.
	count func(ctx context.Context, tx *store.Tx, owner string) (map[string]int, error)
}

// laneKinds are the kinds in the order of the overview.
func (s *Site) laneKinds() []laneKind {
	kinds := []laneKind{{pawl.KindWorkflow, s.findWorkflows, func(ctx context.Context, tx *store.Tx, _ string) (map[string]int, error) {
		return tx.CountWorkflows(ctx)
	}}}
	if s.cfg.Sources != nil {
		kinds = append(kinds, laneKind{pawl.KindSource, s.findSources, func(ctx context.Context, tx *store.Tx, _ string) (map[string]int, error) { return tx.CountSources(ctx) }})
	}
	if s.cfg.Graphs != nil {
		kinds = append(kinds, laneKind{pawl.KindSchedule, s.findSchedules, func(ctx context.Context, tx *store.Tx, owner string) (map[string]int, error) {
			return tx.CountSchedules(ctx, owner)
		}})
	}
	return kinds
}

// ownerOf is whose schedules somebody sees: their own, and administrators
// everybody's, as in the API.
func ownerOf(v *visit) string {
	if v.may("schedules", "admin") {
		return ""
	}
	return v.who.token.User.ID
}

func (s *Site) findWorkflows(ctx context.Context, _ string, f laneFilter, after string, limit int) (rows []laneRow, next string, err error) {
	if !f.any() {
		lanes, next, err := s.cfg.Workflows.Lanes(ctx, after, limit)
		for i := range lanes {
			rows = append(rows, workflowRow(&lanes[i]))
		}
		return rows, next, err
	}
	return s.findByName(ctx, f, limit, func(ctx context.Context, tx *store.Tx) ([]string, error) {
		return tx.FindWorkflows(ctx, f.stored(), after, limit+1)
	}, func(name string) (laneRow, error) {
		d, err := s.cfg.Workflows.Describe(ctx, name)
		return workflowRow(&d.Lane), err
	})
}

func (s *Site) findSources(ctx context.Context, _ string, f laneFilter, after string, limit int) (rows []laneRow, next string, err error) {
	if !f.any() {
		lanes, next, err := s.cfg.Sources.Lanes(ctx, after, limit)
		for i := range lanes {
			rows = append(rows, sourceRow(&lanes[i]))
		}
		return rows, next, err
	}
	return s.findByName(ctx, f, limit, func(ctx context.Context, tx *store.Tx) ([]string, error) {
		return tx.FindSources(ctx, f.stored(), after, limit+1)
	}, func(name string) (laneRow, error) {
		d, err := s.cfg.Sources.Describe(ctx, name)
		return sourceRow(&d.Lane), err
	})
}

// findByName reads the names that may fit, and keeps the lanes that do.
func (s *Site) findByName(ctx context.Context, f laneFilter, limit int, find func(context.Context, *store.Tx) ([]string, error), describe func(name string) (laneRow, error)) (rows []laneRow, next string, err error) {
	var names []string
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		names, err = find(ctx, tx)
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
		row, err := describe(name)
		switch {
		case errors.Is(err, pawl.ErrNotFound): // deleted meanwhile
		case err != nil:
			return nil, "", err
		case f.Word == "" || row.Word == string(f.Word):
			rows = append(rows, row)
		}
	}
	return rows, next, nil
}

// findSchedules goes by name and id, because names belong to their owners.
func (s *Site) findSchedules(ctx context.Context, owner string, f laneFilter, after string, limit int) (rows []laneRow, next string, err error) {
	var found []store.FoundSchedule
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err = tx.FindSchedules(ctx, owner, f.stored(), schedulePlace(after), limit+1)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].Name + " " + found[limit-1].ID
	}
	for _, one := range found {
		d, err := s.cfg.Graphs.Describe(ctx, owner, one.ID)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
		case err != nil:
			return nil, "", err
		case f.Word == "" || d.State == f.Word:
			rows = append(rows, scheduleRow(&d.Lane))
		}
	}
	return rows, next, nil
}

// schedulePlace takes the name and the id of a cursor apart.
func schedulePlace(after string) store.FoundSchedule {
	i := strings.LastIndexByte(after, ' ')
	if i < 0 {
		return store.FoundSchedule{Name: after}
	}
	return store.FoundSchedule{Name: after[:i], ID: after[i+1:]}
}

func workflowRow(l *workflow.Lane) laneRow {
	return laneRow{
		Kind: string(pawl.KindWorkflow), Name: l.Name, ID: l.ID, Href: workflowPath(l.Name), Word: string(l.State), Sentence: l.Sentence,
		Schedule: l.Schedule, LastAt: l.LastAt, LastText: l.LastText, NextAt: l.NextAt, Pending: l.Pending,
	}
}

func sourceRow(l *source.Lane) laneRow {
	return laneRow{
		Kind: string(pawl.KindSource), Name: l.Name, ID: l.ID, Href: sourcePath(l.Name), Word: string(l.State), Sentence: l.Sentence,
		Schedule: l.Schedule, LastAt: l.LastAt, LastText: l.LastText, NextAt: l.NextAt,
	}
}

func scheduleRow(l *schedule.Lane) laneRow {
	return laneRow{
		Kind: string(pawl.KindSchedule), Name: l.Name, ID: l.ID, Href: schedulePath(l.ID), Word: string(l.State), Sentence: l.Sentence,
		Schedule: l.Schedule, LastAt: l.LastAt, LastText: l.LastText, NextAt: l.NextAt, Pending: l.Pending,
	}
}

// lanePath is the page of the lane that a run belongs to; empty if there is
// none.
func lanePath(kind, name, id string) string {
	switch pawl.Kind(kind) {
	case pawl.KindWorkflow:
		return workflowPath(name)
	case pawl.KindSource:
		return sourcePath(name)
	case pawl.KindSchedule:
		return schedulePath(id)
	}
	return ""
}

func workflowPath(name string) string { return "/workflows/" + url.PathEscape(name) }
func sourcePath(name string) string   { return "/sources/" + url.PathEscape(name) }
func schedulePath(id string) string   { return "/schedules/" + url.PathEscape(id) }
