package api

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// ListPart is the input of lists of one source.
type ListPart struct {
	SourcePath
	PageInput
}

const rowCursor = "row"

func (a *API) listRows(ctx context.Context, in *ListPart) (*pageOutput[client.SourceRow], error) {
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
	items := make([]client.SourceRow, len(rows))
	for i, row := range rows {
		items[i] = client.SourceRow{}
		for column, v := range row {
			items[i][column] = valueAnswer(v)
		}
	}
	return &pageOutput[client.SourceRow]{pageOf(items, rowCursor, next)}, nil
}

// tellValue brings the value of a column into the form that answers have.
func valueAnswer(v any) any {
	switch v := v.(type) {
	case time.Time:
		return client.At(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such numbers
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return v
}

const rejectCursor = "reject"

func (a *API) listRejects(ctx context.Context, in *ListPart) (*pageOutput[client.Reject], error) {
	before, err := in.placeInOrder(rejectCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Reject]{}
	err = a.ofSource(ctx, in.Name, func(ctx context.Context, tx *store.Tx, s sourcestore.Source) error {
		list, err := sourcestore.In(tx).ListRejects(ctx, s.Name, before, in.Limit+1)
		cursor := func(r sourcestore.Reject) string { return strconv.FormatInt(r.ID, 10) }
		out.Body = cutPage(list, in.Limit, rejectCursor, cursor, func(r sourcestore.Reject) client.Reject {
			return client.Reject{ID: cursor(r), RunID: r.RunID, Page: r.Page, Row: r.Row, Reason: r.Reason, Raw: r.Raw, Times: r.Times, CreatedAt: client.At(r.CreatedAt)}
		})
		return err
	})
	return out, err
}

type listSourceVersionsInput struct {
	ListPart
	Definition bool `query:"definition" doc:"Show the definitions, too."`
}

const sourceVersionCursor = "source-version"

func (a *API) listSourceVersions(ctx context.Context, in *listSourceVersionsInput) (*pageOutput[client.SourceVersion], error) {
	before, err := in.placeInOrder(sourceVersionCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.SourceVersion]{}
	err = a.ofSource(ctx, in.Name, func(ctx context.Context, tx *store.Tx, s sourcestore.Source) error {
		list, err := sourcestore.In(tx).ListSourceVersions(ctx, s.ID, before, in.Limit+1)
		cursor := func(v sourcestore.SourceVersion) string { return strconv.Itoa(v.Number) }
		out.Body = cutPage(list, in.Limit, sourceVersionCursor, cursor, func(v sourcestore.SourceVersion) client.SourceVersion {
			told := client.SourceVersion{Version: v.Version, Number: v.Number, CreatedAt: client.At(v.CreatedAt), CreatedBy: client.NullString(userOf(v.CreatedBy)), Active: v.Number == s.Number, Definition: nil}
			if in.Definition {
				told.Definition = v.Definition
			}
			return told
		})
		return err
	})
	return out, err
}
