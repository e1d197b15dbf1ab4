package cli

import (
	"os"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	document "github.com/pawlrun/pawl/internal/definition"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/when"
	"github.com/pawlrun/pawl/internal/workflow"
)

// foresight finds definitions that would never run if they were applied now, as the
// server does. Only validate has one: what apply sends may be in force already, and then
// its last slot may be over. Nil foresees nothing.
type foresight struct {
	now       time.Time
	calendars map[string]when.Calendar // of all files that are checked together
}

// newForesight collects the calendars first, because any file may name those of another.
// What cannot be read is told by whoever checks it.
func newForesight(files []definition, now time.Time) *foresight {
	f := &foresight{now: now, calendars: map[string]when.Calendar{}}
	for _, file := range files {
		text, err := os.ReadFile(file.path)
		if err != nil {
			continue
		}
		documents, _ := document.Read(file.path, text)
		for _, doc := range documents {
			if doc.Kind != calendarspec.Kind {
				continue
			}
			in, _ := calendarspec.FromDocument(doc)
			if days, err := when.NewCalendar(in.Days); err == nil {
				f.calendars[in.Name] = days
			}
		}
	}
	return f
}

func (f *foresight) schedule(in client.ScheduleRequest, wrong []pawl.Field) (why pawl.Field, never bool) {
	if f == nil || len(wrong) > 0 {
		return why, false // one fault at a time: it may be about the times
	}
	return graphspec.Foresee(in, f.calendars, f.now)
}

func (f *foresight) source(d sourcespec.Definition, wrong []pawl.Field) (why pawl.Field, never bool) {
	if f == nil || len(wrong) > 0 {
		return why, false
	}
	return sourcespec.Foresee(d, f.calendars, f.now)
}

func (f *foresight) workflow(file, source string, config workflow.Config) error {
	if f == nil {
		return nil
	}
	return workflow.Foresee(file, source, config, f.calendars, f.now)
}

// writtenAt is a fault at its place in a document, as applying it would tell it.
func writtenAt(doc document.Document, f pawl.Field) pawl.Field {
	f.Place = doc.Place(f.Pointer)
	f.Message = strings.TrimPrefix(f.Pointer, "/") + " " + f.Message
	return f
}
