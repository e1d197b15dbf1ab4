package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func (r *rig) putHolidays(token string, days ...any) *reply {
	r.t.Helper()
	return r.as(token, "PUT", "/api/v1/calendars/holidays", map[string]any{"name": "holidays", "days": days})
}

// A calendar is made, changed, read and deleted; what changes it is in the audit
// log, and what uses it shows the next instants without its days.
func TestCalendars(t *testing.T) {
	both(t, func(r *rig) {
		admin := r.token("root", userstore.RoleAdmin, "*")
		var made client.AppliedCalendar
		r.putHolidays(admin, "2099-01-01").want(http.StatusCreated).into(&made)
		if made.What != "created" || made.Calendar.Revision != 1 || made.Previous != nil {
			t.Errorf("%+v", made)
		}
		body := yearly("poet", "http:poet")
		body["cron"] = []any{"0 9 * * *", "0 17 * * 5"}
		body["timezone"], body["from"], body["except"] = "UTC", "2099-01-01", []any{"calendar:holidays", "2099-01-03", "* * * * 6"}
		var s client.Schedule
		p := r.do("POST", "/api/v1/schedules", body).want(http.StatusCreated)
		p.into(&s)
		if s.Cron != "0 9 * * *; 0 17 * * 5" || !strings.Contains(string(p.body), `"cron":["0 9 * * *","0 17 * * 5"]`) || s.From != "2099-01-01" || len(s.Except) != 3 {
			t.Errorf("%s", p.body)
		}
		next := func() (out []string) {
			var n client.NextInstants
			r.do("GET", "/api/v1/schedules/"+s.ID+"/next?count=3", nil).want(200).into(&n)
			for _, one := range n.Items {
				out = append(out, one.At.Format("01-02 15:04"))
			}
			return out
		}
		if got := next(); !slices.Equal(got, []string{"01-02 09:00", "01-02 17:00", "01-04 09:00"}) { // 2 January 2099 is a Friday
			t.Errorf("next %v", got)
		}
		var changed client.AppliedCalendar
		r.do("PUT", "/api/v1/calendars/holidays?dryRun=true", map[string]any{"name": "holidays", "days": []any{"2099-01-02"}}).want(200).into(&changed)
		if changed.What != "updated" || !changed.DryRun || len(next()) != 3 || next()[0] != "01-02 09:00" {
			t.Errorf("a dry run: %+v, %v", changed, next())
		}
		r.putHolidays(admin, "2099-01-01/2099-01-02").want(200).into(&changed)
		if got := next(); changed.Previous == nil || !slices.Equal(got, []string{"01-04 09:00", "01-05 09:00", "01-06 09:00"}) {
			t.Errorf("next %v", got)
		}
		var y client.LaneWhy
		r.do("GET", "/api/v1/lanes/schedule/poet/why?at=2099-01-02T09:00:00Z", nil).want(200).into(&y)
		if y.Around == nil || !strings.Contains(fmt.Sprint(*y.Around), "excluded") && !strings.Contains(fmt.Sprint(*y.Around), "calendar holidays has 2099-01-01/2099-01-02") {
			t.Errorf("%+v", y.Around)
		}
		r.putHolidays(admin, "2099-01-01/2099-01-02").want(200).into(&changed)
		if changed.What != "unchanged" {
			t.Errorf("%+v", changed)
		}
		var list client.Page[client.Calendar]
		r.do("GET", "/api/v1/calendars", nil).want(200).into(&list)
		var one client.Calendar
		r.do("GET", "/api/v1/calendars/holidays", nil).want(200).into(&one)
		if len(list.Items) != 1 || list.Items[0].Name != "holidays" || !slices.Equal(one.UsedBy, []string{"schedule poet"}) || one.Revision != 2 {
			t.Errorf("%+v, %+v", list, one)
		}
		r.do("DELETE", "/api/v1/calendars/holidays", nil).problem(409, "calendar_used")
		r.do("PATCH", "/api/v1/schedules/"+s.ID, map[string]any{"except": []any{}}).want(200)
		r.do("DELETE", "/api/v1/calendars/holidays", nil).want(204)
		r.do("GET", "/api/v1/calendars/holidays", nil).problem(404, "not_found")
		if n := r.count(`select count(*) from audit_log where action in ('calendar.created', 'calendar.updated', 'calendar.delete')`); n != 3 {
			t.Errorf("%d lines in the audit log", n)
		}
	})
}

// Who may not write calendars changes none, and nobody learns whose schedules use
// one.
func TestCalendarsOfOthers(t *testing.T) {
	both(t, func(r *rig) {
		reader, writer := r.token("ada", userstore.RoleViewer, "calendars:read"), r.token("bob", userstore.RoleOperator, "calendars:write")
		r.putHolidays(reader, "2099-01-01").problem(403, "forbidden")
		r.putHolidays(writer, "2099-01-01").want(201)
		body := yearly("secret-plan", "http:poet")
		body["except"] = []any{"calendar:holidays"}
		r.do("POST", "/api/v1/schedules", body).want(201)
		for _, token := range []string{reader, writer} {
			if got := string(r.as(token, "GET", "/api/v1/calendars/holidays", nil).want(200).body); strings.Contains(got, "secret-plan") {
				t.Errorf("%s", got)
			}
		}
		if p := r.as(writer, "DELETE", "/api/v1/calendars/holidays", nil).problem(409, "calendar_used"); strings.Contains(p.Detail, "secret-plan") || !strings.Contains(p.Detail, "1 others") {
			t.Errorf("%+v", p)
		}
		if p := r.putHolidays(writer, "0001-01-01/9999-12-31").problem(422, "invalid"); strings.Contains(fmt.Sprint(p), "secret-plan") || p.Errors[0].Pointer != "/days" {
			t.Errorf("%+v", p)
		}
		r.as(reader, "DELETE", "/api/v1/calendars/holidays", nil).problem(403, "forbidden")
	})
}

// Hostile definitions are refused with their places, and cost little.
func TestBadTimesAreRefusedWithPlaces(t *testing.T) {
	both(t, func(r *rig) {
		many := make([]any, 2001)
		for i := range many {
			many[i] = "2099-01-01"
		}
		for _, c := range []struct {
			name string
			days []any
			want string
		}{
			{"x", []any{"2099-01-01", "tomorrow"}, "/days/1"}, {"x", []any{"2099-02-30"}, "/days/0"}, {"x", []any{"2099-01-02/2099-01-01"}, "/days/0"}, {"x", many, "/days"},
			{"x", []any{strings.Repeat("9", 50_000)}, "/days/0"}, {"..%2Fx", []any{"2099-01-01"}, "/name"}, {"%20", []any{"2099-01-01"}, "/name"},
		} {
			p := r.do("PUT", "/api/v1/calendars/"+c.name, map[string]any{"name": strings.NewReplacer("%2F", "/", "%20", " ").Replace(c.name), "days": c.days}).problem(422, "invalid")
			if len(p.Errors) != 1 || p.Errors[0].Pointer != c.want || len(p.Errors[0].Message) > 400 {
				t.Errorf("%.60v: %.300v", c.days, p.Errors)
			}
		}
		for _, c := range []struct {
			field string
			value any
			want  string
		}{
			{"except", []any{"* * * * *"}, "/except"}, {"except", []any{"nope"}, "/except/0"}, {"except", many, "/except"}, {"except", []any{"calendar:x"}, "/except/0"},
			{"from", "2099-99-99", "/from"}, {"until", "2001-01-01", "/until"}, {"jitter", "-5m", "/jitter"}, {"maxRuns", -1, "/maxRuns"}, {"at", "2001-01-01T00:00:00Z", "/cron"},
			{"interval", "5m", "/cron"}, {"cron", []any{}, "/cron"}, {"cron", []any{"0 9 * * *", "x"}, "/cron/1"}, {"cron", 5, "/cron"}, {"cron", strings.Repeat("* ", 25_000), "/cron"},
		} {
			body := yearly("s", "http:poet")
			body[c.field] = c.value
			p := r.do("POST", "/api/v1/schedules", body).problem(422, "invalid")
			if len(p.Errors) == 0 || !strings.HasSuffix(p.Errors[0].Pointer, c.want) || len(p.Errors[0].Message) > 500 {
				t.Errorf("%s %.60v: %.300v", c.field, c.value, p.Errors)
			}
		}
		past := yearly("s", "http:poet")
		delete(past, "cron")
		past["at"] = "2001-01-01T00:00:00Z"
		if p := r.do("POST", "/api/v1/schedules", past).problem(422, "invalid"); p.Errors[0].Pointer != "/at" || !strings.Contains(p.Errors[0].Message, "is in the past") {
			t.Errorf("%+v", p.Errors)
		}
		if n := r.count(`select count(*) from schedules`); n != 0 {
			t.Errorf("%d schedules", n)
		}
	})
}
