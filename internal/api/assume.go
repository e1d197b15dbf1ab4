package api

import (
	"context"
	"strings"

	"github.com/pawlrun/pawl/client"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	"github.com/pawlrun/pawl/internal/lane"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
)

// Assumed are what a dry run takes to be there: what is brought together with the
// definition, and would be there by then.
type Assumed struct {
	Assume []string `query:"assume" maxItems:"1000" example:"source:prices" doc:"Of a dry run: sources and calendars that are judged as if they were there, each as source:NAME or calendar:NAME. A calendar then leaves out no day."`
}

// in is a context in which they are taken to be there. That is for dry runs alone: what
// is kept refers to nothing that is not there.
func (a Assumed) in(ctx context.Context, dryRun bool) (context.Context, error) {
	if len(a.Assume) == 0 {
		return ctx, nil
	}
	fault := ""
	for _, thing := range a.Assume {
		if kind, name, _ := strings.Cut(thing, ":"); name == "" || kind != sourcespec.Kind && kind != calendarspec.Kind {
			fault = "must be source:NAME or calendar:NAME"
		}
	}
	if !dryRun {
		fault = "is for dry runs"
	}
	if fault != "" {
		return ctx, invalid("Ask with dryRun, or leave it out.", client.Fault{Pointer: "/assume", Message: fault})
	}
	return lane.Assume(ctx, a.Assume), nil
}
