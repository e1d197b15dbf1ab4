package client

import "net/url"

// CalendarsPath is where calendars are.
const CalendarsPath = "/api/v1/calendars"

// CalendarPath is where a calendar is.
func CalendarPath(name string) string { return CalendarsPath + "/" + url.PathEscape(name) }

// Calendar is a set of days that schedules leave out.
type Calendar struct {
	Name      string   `json:"name"`
	Days      []string `json:"days" nullable:"false" doc:"Dates and ranges of dates, whose ends both count."`
	Revision  int64    `json:"revision" doc:"Raised by every change."`
	UsedBy    []string `json:"usedBy,omitempty" doc:"What leaves out its days, as far as you may see it; not in lists."`
	CreatedAt Instant  `json:"createdAt"`
	UpdatedAt Instant  `json:"updatedAt"`
}

// CalendarRequest asks for a calendar.
type CalendarRequest struct {
	Name string   `json:"name" example:"holidays"`
	Days []string `json:"days" nullable:"false" doc:"Dates such as 2026-12-25, and ranges such as 2026-12-24/2027-01-01, whose ends both count."`
}

// AppliedCalendar tells what became of a definition that was applied.
type AppliedCalendar struct {
	What     string    `json:"what" enum:"created,updated,unchanged"`
	DryRun   bool      `json:"dryRun" doc:"Nothing was changed; what shows what would be."`
	Calendar Calendar  `json:"calendar" doc:"As it is now."`
	Previous *Calendar `json:"previous,omitempty" doc:"As it was before; absent if it is new."`
}
