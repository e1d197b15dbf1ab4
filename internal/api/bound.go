package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/pawlrun/pawl/internal/store"
)

const (
	// pageBytes is how much text may be read for a page of a list. A page that
	// would need more ends early, with a cursor.
	pageBytes = 8 << 20
	// itemBytes is how much may be read for a page of one thing. Whatever is
	// stored through Pawl is smaller.
	itemBytes = 64 << 20
	// lessItems is by how much a page that is too large is made smaller.
	lessItems = 4
)

// pages reports how a list is asked for.
func (in *PageInput) pages() *PageInput { return in }

// bounded answers a request; that of a list with as many things as fit.
func bounded[I, O any](ctx context.Context, in *I, handler func(context.Context, *I) (*O, error)) (*O, error) {
	list, ok := any(in).(interface{ pages() *PageInput })
	if !ok {
		return handler(ctx, in)
	}
	for page := list.pages(); ; page.Limit = max(1, page.Limit/lessItems) {
		most := int64(pageBytes)
		if page.Limit <= 1 {
			most = itemBytes
		}
		out, err := handler(store.WithBudget(ctx, most), in)
		switch {
		case !errors.Is(err, store.ErrBudget):
			return out, err
		case page.Limit <= 1:
			return nil, newProblem(http.StatusUnprocessableEntity, "too_large", "the next item of this list is too large to be returned", "Ask for it by its id.")
		}
	}
}
