package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/calendar"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/calendarstore"
)

// Calendars belong to everybody, like sources: who may write them decides on
// which days the schedules that name them run. Whose schedules those are is told
// to their owners and to admins.

func calendarOf(c calendarstore.Calendar) client.Calendar {
	return client.Calendar{Name: c.Name, Days: orEmpty(c.Days), Revision: c.Revision, CreatedAt: client.At(c.CreatedAt), UpdatedAt: client.At(c.UpdatedAt)}
}

// usedCalendar is a calendar with what uses it, as far as the caller may see that.
func (a *API) usedCalendar(ctx context.Context, tx *store.Tx, c calendarstore.Calendar) (out client.Calendar, err error) {
	out = calendarOf(c)
	out.UsedBy, _, err = a.schedules.Calendars().UsersOf(ctx, tx, c.Name, access.Reach(callOf(ctx).token, schedulesResource))
	return out, err
}

// CalendarPath is the input of requests about one calendar.
type CalendarPath struct {
	Name string `path:"name" maxLength:"128" example:"holidays" doc:"The name of the calendar."`
}

const calendarCursor = "calendar"

func (a *API) listCalendars(ctx context.Context, in *PageInput) (*pageOutput[client.Calendar], error) {
	after, err := in.place(calendarCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	var list []calendarstore.Calendar
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = calendarstore.In(tx).List(ctx, after, in.Limit+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &pageOutput[client.Calendar]{cutPage(list, in.Limit, calendarCursor, func(c calendarstore.Calendar) string { return c.Name }, calendarOf)}, nil
}

func (a *API) getCalendar(ctx context.Context, in *CalendarPath) (*output[client.Calendar], error) {
	out := &output[client.Calendar]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, err := calendarstore.In(tx).Get(ctx, in.Name)
		if err == nil {
			out.Body, err = a.usedCalendar(ctx, tx, c)
		}
		return err
	})
	return out, err
}

type applyCalendarInput struct {
	MatchHeader
	CalendarPath
	DryRun bool `query:"dryRun" doc:"Check and compare only; change nothing."`
	Body   client.CalendarRequest
}

type applyCalendarOutput struct {
	Status int
	ETag   string `header:"ETag" doc:"Of the active definition."`
	Body   client.AppliedCalendar
}

// applyCalendar makes a calendar or changes it. The same definition changes
// nothing, so it needs no idempotency key.
func (a *API) applyCalendar(ctx context.Context, in *applyCalendarInput) (*applyCalendarOutput, error) {
	if in.Body.Name != in.Name {
		return nil, invalid("Apply each calendar under its own name.", client.Fault{Pointer: "/name", Message: fmt.Sprintf("must be that of the address, %q", in.Name)})
	}
	caller := callOf(ctx).token
	out := &applyCalendarOutput{Status: http.StatusOK}
	err := a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		what, was, now, err := a.schedules.Calendars().Apply(ctx, tx, in.Body, actor(caller))
		if err != nil {
			return err
		}
		out.Body = client.AppliedCalendar{What: what, DryRun: in.DryRun}
		if out.Body.Calendar, err = a.usedCalendar(ctx, tx, now); err != nil {
			return err
		}
		tag := ""
		if was.Name != "" {
			previous := calendarOf(was)
			out.Body.Previous, tag = &previous, calendarTag(was)
		}
		if err := in.expect(fmt.Sprintf("the calendar %q", in.Name), tag); err != nil {
			return err
		}
		out.ETag = calendarTag(now)
		if in.DryRun {
			out.ETag = tag
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	if out.Body.What == calendar.Created && !in.DryRun {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func calendarTag(c calendarstore.Calendar) string { return tagOf(fmt.Sprint(c.Revision)) }

func (a *API) deleteCalendar(ctx context.Context, in *CalendarPath) (*struct{}, error) {
	caller := callOf(ctx).token
	return nil, a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return a.schedules.Calendars().Delete(ctx, tx, in.Name, access.Reach(caller, schedulesResource), actor(caller))
	})
}

// calendarRoutes are those of days that schedules leave out.
func (s *surface) calendarRoutes() {
	add(s, route{method: "GET", path: "/api/v1/calendars", scope: "calendars:read", id: "listCalendars", tag: "Calendars", summary: "List calendars by name"}, (*API).listCalendars)
	add(s, route{method: "GET", path: "/api/v1/calendars/{name}", scope: "calendars:read", id: "getCalendar", tag: "Calendars", summary: "Show a calendar", errors: []int{404}}, (*API).getCalendar)
	add(s, route{method: "PUT", path: "/api/v1/calendars/{name}", scope: "calendars:write", id: "applyCalendar", tag: "Calendars", summary: "Create or change a calendar; the schedules that use it are planned again. The same definition again changes nothing", status: http.StatusOK, also: http.StatusCreated, errors: []int{404, 409, 412}}, (*API).applyCalendar)
	add(s, route{method: "DELETE", path: "/api/v1/calendars/{name}", scope: "calendars:write", id: "deleteCalendar", tag: "Calendars", summary: "Delete a calendar; refused with calendar_used while something uses it", status: http.StatusNoContent, errors: []int{404, 409}}, (*API).deleteCalendar)
}
