// Package spec reads the definitions of calendars: files with kind: calendar.
package spec

import (
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/when"
)

// Kind is what the definitions name.
const Kind = "calendar"

// Schema is the JSON Schema of a definition.
func Schema() []byte {
	return definition.Schema(Kind, "Calendar", "Days on which schedules do not run.", written{})
}

// written is a definition as it stands in a file.
type written struct {
	Name string   `json:"name" definition:"required" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" is:"a name: a letter or digit, then up to 127 letters, digits, dots, hyphens and underscores" doc:"Unique. Schedules name it in except: [calendar:NAME]."`
	Days []string `json:"days" definition:"required,max=2000" doc:"Dates such as 2026-12-25, and ranges such as 2026-12-24/2027-01-01, whose ends both count."`
}

// FromDocument reads one definition and tells every fault with its place.
func FromDocument(doc definition.Document) (client.CalendarRequest, []pawl.Field) {
	var w written
	faults := doc.Check(&w)
	if !faults.Any() {
		_, err := when.NewCalendar(w.Days)
		for _, f := range definition.FieldsOf(err) {
			faults.Add(f.Pointer, "%s", f.Message)
		}
	}
	return client.CalendarRequest{Name: w.Name, Days: w.Days}, faults.Fields()
}
