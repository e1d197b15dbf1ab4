package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

type backfillsPage struct {
	Head      *scheduleHead
	Backfills []schedulestore.Backfill
	From, To  string      // what the form begins with
	Grants    []grantView // that can be chosen
}

const (
	backfillsShown = 20
	grantsChosen   = 100 // are looked at

	// formTime is how browsers write an instant without a zone; forms say that
	// it is UTC.
	formTime = "2006-01-02T15:04"
)

// showBackfills is where the past is run once more.
func (s *Site) showBackfills(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showScheduleTab(w, r, v, "backfills", " · backfill", func(h *scheduleHead) (any, error) {
		today := v.now.UTC().Truncate(24 * time.Hour)
		out := backfillsPage{Head: h, From: today.AddDate(0, 0, -7).Format(formTime), To: today.Format(formTime)}
		err := s.cfg.DB.Read(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			out.Backfills, err = schedulestore.In(tx).ListBackfills(ctx, h.ID, backfillsShown)
			return err
		})
		if err == nil && h.CanWrite && v.may("grants", "read") {
			out.Grants, err = s.grantsToChoose(r, v)
		}
		return out, err
	})
}

// grantsToChoose are the newest grants of the visitor that are neither over nor
// made for one schedule alone.
func (s *Site) grantsToChoose(r *http.Request, v *visit) ([]grantView, error) {
	var list client.Page[grantView]
	err := s.ask(r.Context(), v, "/api/v1/grants", url.Values{"limit": {strconv.Itoa(grantsChosen)}}, &list)
	return slices.DeleteFunc(list.Items, func(g grantView) bool { return g.Automatic || g.Over(v.now) }), err
}

// planBackfill has a plan made, and leads to it.
func (s *Site) planBackfill(w http.ResponseWriter, r *http.Request, v *visit) {
	body := map[string]any{}
	for _, name := range []string{"from", "to"} {
		at, err := time.Parse(formTime, strings.TrimSpace(r.FormValue(name)))
		if err != nil {
			s.refused(w, r, &pawl.Error{Code: pawl.CodeInvalid, Msg: "“" + name + "” is not a date and time", Hint: "Write it like 2030-01-31T09:00, in UTC."})
			return
		}
		body[name] = pawl.FormatTime(at)
	}
	if text := strings.TrimSpace(r.FormValue("perMinute")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			s.refused(w, r, &pawl.Error{Code: pawl.CodeInvalid, Msg: "slots per minute is not a number", Hint: "Use a number from 1 to 600."})
			return
		}
		body["perMinute"] = n
	}
	if id := r.FormValue("grantId"); id != "" {
		body["grantId"] = id
	}
	var made backfillView
	if err := s.inside.post(r.Context(), v.who.text, apiSchedule(r, "/backfill"), body, &made); err != nil {
		s.refused(w, r, err)
		return
	}
	http.Redirect(w, r, "/backfills/"+url.PathEscape(made.ID), http.StatusSeeOther)
}

type backfillPage struct {
	Backfill backfillView
	Schedule client.Schedule
	CanWrite bool
	More     int // slots of the plan that are not shown
}

const plannedShown = 20

// showBackfill is the plan until somebody confirms it, and then how far it has
// come.
func (s *Site) showBackfill(w http.ResponseWriter, r *http.Request, v *visit) {
	out := backfillPage{CanWrite: v.may("schedules", "write")}
	if err := s.ask(r.Context(), v, apiBackfill(r, ""), url.Values{"slots": {"true"}}, &out.Backfill); err != nil {
		s.problem(w, r, err)
		return
	}
	if err := s.ask(r.Context(), v, "/api/v1/schedules/"+url.PathEscape(out.Backfill.ScheduleID), nil, &out.Schedule); err != nil {
		s.problem(w, r, err)
		return
	}
	if n := len(out.Backfill.Slots); n > plannedShown {
		out.Backfill.Slots, out.More = out.Backfill.Slots[:plannedShown], n-plannedShown
	}
	f := s.frameFor(r, v, "overview", "Backfill of "+out.Schedule.Name)
	f.Live = followSchedule(out.Schedule.ID)
	s.show(w, r, "backfill.html", f, out)
}

func apiBackfill(r *http.Request, below string) string {
	return "/api/v1/backfills/" + segment(r, "id") + below
}

// confirmBackfill lets the plan begin that the page showed, and no other.
func (s *Site) confirmBackfill(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiBackfill(r, "/confirm"), map[string]any{"hash": r.FormValue("hash")}, "Backfill started.")
}

func (s *Site) pauseBackfill(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiBackfill(r, "/pause"), nil, "Paused. No more slots will start.")
}

func (s *Site) resumeBackfill(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiBackfill(r, "/resume"), nil, "Resumed.")
}

func (s *Site) cancelBackfill(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiBackfill(r, "/cancel"), nil, "Cancelled. Running slots continue.")
}
