package lane

import (
	"context"
	"slices"
)

type assumed struct{}

// Assume is a context in which things that are not there count as if they were, each
// as kind:name. A dry run of a definition is judged so that comes together with what it
// refers to; nothing that is kept may be made in it.
func Assume(ctx context.Context, things []string) context.Context {
	return context.WithValue(ctx, assumed{}, things)
}

// Assumed reports whether a thing counts as if it were there.
func Assumed(ctx context.Context, kind, name string) bool {
	things, _ := ctx.Value(assumed{}).([]string)
	return slices.Contains(things, kind+":"+name)
}
