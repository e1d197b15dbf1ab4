package web

import (
	"context"
	"net/url"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
)

// laneRow is a lane as the overview shows it (A-143..A-147).
type laneRow struct{ lane.Lane }

// Key names a lane among all, for the page.
func (l laneRow) Key() string { return string(l.Kind) + "-" + l.Lane.Key }

// Href is the page of the lane.
func (l laneRow) Href() string { return lanePath(string(l.Kind), l.Lane.Key) }

// Word is the state of the lane.
func (l laneRow) Word() string { return string(l.State) }

// laneFilter picks lanes; empty fields pick all.
type laneFilter struct {
	Text string // part of the name
	Kind string
	Word run.State
}

// kinds are the kinds there are, as filters offer them.
func (s *Site) kinds() (names []string) {
	for _, k := range s.cfg.Kinds {
		names = append(names, string(k.Kind()))
	}
	return names
}

// ownerOf is whose lanes of a kind somebody sees, where they are owned: their own,
// and administrators everybody's, as in the API.
func ownerOf(v *visit, kind pawl.Kind) string {
	if v.may(string(kind)+"s", "admin") {
		return ""
	}
	return v.who.token.User.ID
}

// findLanes goes through the kinds, and in each by name. A cursor is the kind
// and the place of the last lane of a page.
func (s *Site) findLanes(ctx context.Context, v *visit, f laneFilter, cursor string, limit int) (rows []laneRow, next string, err error) {
	from, after, _ := strings.Cut(cursor, ":")
	begun := cursor == ""
	for _, k := range s.cfg.Kinds {
		kind := string(k.Kind())
		if !begun && kind != from {
			continue
		}
		begun = true
		if f.Kind != "" && f.Kind != kind {
			after = ""
			continue
		}
		if len(rows) >= limit { // the page is full, and there is another kind
			return rows, kind + ":", nil
		}
		found, more, err := k.List(ctx, lane.Query{Owner: ownerOf(v, k.Kind()), Text: f.Text, State: f.Word, After: lane.ParsePlace(after), Limit: limit - len(rows)})
		if err != nil {
			return nil, "", err
		}
		for _, l := range found {
			rows = append(rows, laneRow{l})
		}
		if more != (lane.Place{}) {
			return rows, kind + ":" + more.String(), nil
		}
		after = ""
	}
	return rows, "", nil
}

// lanePath is the page of a lane. Every kind has its pages under its name.
func lanePath(kind, key string) string { return "/" + kind + "s/" + url.PathEscape(key) }
