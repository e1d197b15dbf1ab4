package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// SourceRow is a row, by the names of its columns.
type SourceRow map[string]any

// ListPart is the input of lists of one source.
type ListPart struct {
	SourcePath
	PageInput
}

type listRowsOutput struct{ Body Page[SourceRow] }

const rowCursor = "row"

func (a *API) listRows(ctx context.Context, in *ListPart) (*listRowsOutput, error) {
	before, err := in.place(rowCursor)
	if err != nil {
		return nil, err
	}
	if textFault(in.Name, maxName) != "" {
		return nil, a.noSource(ctx, in.Name)
	}
	if before != "" && textFault(before, maxName) != "" {
		return nil, badCursor()
	}
	rows, next, err := a.sources.Rows(ctx, in.Name, before, in.Limit)
	if before != "" && errors.Is(err, pawl.ErrInvalid) {
		return nil, badCursor()
	}
	if err != nil {
		return nil, a.aboutSource(ctx, in.Name, err)
	}
	items := make([]SourceRow, len(rows))
	for i, row := range rows {
		items[i] = SourceRow{}
		for column, v := range row {
			items[i][column] = valueAnswer(v)
		}
	}
	return &listRowsOutput{pageOf(items, rowCursor, next)}, nil
}

// tellValue brings the value of a column into the form that answers have.
func valueAnswer(v any) any {
	switch v := v.(type) {
	case time.Time:
		return Instant{v}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such numbers
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return v
}

// Reject is a row of the outside that did not fit.
type Reject struct {
	ID        string  `json:"id" example:"17"`
	RunID     string  `json:"runId" format:"uuid" doc:"The run that met it."`
	Page      int     `json:"page" doc:"Of the run, from 1."`
	Row       int     `json:"row" doc:"Of the page, from 1."`
	Reason    string  `json:"reason" example:"close: \"n/a\" is no number"`
	Raw       string  `json:"raw" doc:"As it came, cut if it is long."`
	CreatedAt Instant `json:"createdAt"`
}

type listRejectsOutput struct{ Body Page[Reject] }

const rejectCursor = "reject"

func (a *API) listRejects(ctx context.Context, in *ListPart) (*listRejectsOutput, error) {
	before, err := in.placeInOrder(rejectCursor)
	if err != nil {
		return nil, err
	}
	out := &listRejectsOutput{}
	err = a.ofSource(ctx, in.Name, func(ctx context.Context, tx *store.Tx, s store.Source) error {
		list, err := tx.ListRejects(ctx, s.Name, before, in.Limit+1)
		cursor := func(r store.Reject) string { return strconv.FormatInt(r.ID, 10) }
		out.Body = cutPage(list, in.Limit, rejectCursor, cursor, func(r store.Reject) Reject {
			return Reject{cursor(r), r.RunID, r.Page, r.Row, r.Reason, r.Raw, Instant{r.CreatedAt}}
		})
		return err
	})
	return out, err
}

// SourceVersion is a definition as it was applied.
type SourceVersion struct {
	Version    string          `json:"version" doc:"A hash of the definition."`
	Number     int             `json:"number" example:"3" doc:"Counts the definitions of a source."`
	CreatedAt  Instant         `json:"createdAt"`
	CreatedBy  *string         `json:"createdBy" doc:"The user who applied it."`
	Active     bool            `json:"active" doc:"It is the one in force."`
	Definition json.RawMessage `json:"definition,omitempty" doc:"If it was asked for."`
}

type listSourceVersionsInput struct {
	ListPart
	Definition bool `query:"definition" doc:"Show the definitions, too."`
}

type listSourceVersionsOutput struct{ Body Page[SourceVersion] }

const sourceVersionCursor = "source-version"

func (a *API) listSourceVersions(ctx context.Context, in *listSourceVersionsInput) (*listSourceVersionsOutput, error) {
	before, err := in.placeInOrder(sourceVersionCursor)
	if err != nil {
		return nil, err
	}
	out := &listSourceVersionsOutput{}
	err = a.ofSource(ctx, in.Name, func(ctx context.Context, tx *store.Tx, s store.Source) error {
		list, err := tx.ListSourceVersions(ctx, s.ID, before, in.Limit+1)
		cursor := func(v store.SourceVersion) string { return strconv.Itoa(v.Number) }
		out.Body = cutPage(list, in.Limit, sourceVersionCursor, cursor, func(v store.SourceVersion) SourceVersion {
			told := SourceVersion{v.Version, v.Number, Instant{v.CreatedAt}, orNull(userOf(v.CreatedBy)), v.Number == s.Number, nil}
			if in.Definition {
				told.Definition = v.Definition
			}
			return told
		})
		return err
	})
	return out, err
}
