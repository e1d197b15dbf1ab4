package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// scheduleHead is the part that all pages about a schedule have.
type scheduleHead struct {
	client.Schedule
	Why      client.LaneWhy // with its word and sentence
	Tab      string
	Base     string   // the address of its first page
	Newest   *runView // what asks or could be decided about; nil if nothing needs a person
	CanWrite bool
	CanRuns  bool
}

// Attention reports whether the card for a person is shown.
func (h scheduleHead) Attention() bool { return h.Why.Status == "Needs attention" }

func apiSchedule(r *http.Request, below string) string {
	return "/api/v1/schedules/" + segment(r, "id") + below
}

func (s *Site) scheduleHeadOf(r *http.Request, v *visit, tab string) (h *scheduleHead, err error) {
	h = &scheduleHead{Tab: tab, Base: lanePath(string(pawl.KindSchedule), r.PathValue("id")), CanWrite: v.may("schedules", "write"), CanRuns: v.may("runs", "write")}
	if err := s.ask(r.Context(), v, apiSchedule(r, ""), nil, &h.Schedule); err != nil {
		return h, err
	}
	if !v.may("lanes", "read") {
		return h, nil
	}
	if err := s.ask(r.Context(), v, "/api/v1/lanes/schedule/"+segment(r, "id")+"/why", nil, &h.Why); err != nil {
		return h, err
	}
	if !h.Attention() || len(h.Why.Recent) == 0 || !v.may("runs", "read") {
		return h, nil
	}
	newest := &runView{}
	if err := s.ask(r.Context(), v, "/api/v1/runs/"+h.Why.Recent[0].ID, nil, newest); err != nil {
		return h, err
	}
	if len(newest.Actions) > 0 {
		h.Newest = newest
	}
	return h, nil
}

// showScheduleTab shows a page about a schedule: read fills its own part.
func (s *Site) showScheduleTab(w http.ResponseWriter, r *http.Request, v *visit, tab, title string, read func(h *scheduleHead) (any, error)) {
	h, err := s.scheduleHeadOf(r, v, tab)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	body, err := read(h)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	f := s.frameFor(r, v, "overview", h.Name+title)
	f.Live = followSchedule(h.ID)
	s.show(w, r, "schedule_"+tab+".html", f, body)
}

type schedulePage struct {
	Head    *scheduleHead
	Next    []nextInstant
	Slots   []client.Slot
	Status  string
	Trigger string
	Pager   pager
}

const (
	slotsPerPage = 25
	nextShown    = 8
	nextLooked   = 400 // for days of clock changes: a daily schedule meets both of a year
	changesShown = 2
)

// showSchedule is what comes and what became of what came.
func (s *Site) showSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showScheduleTab(w, r, v, "slots", "", func(h *scheduleHead) (any, error) {
		query := listQuery(r, slotsPerPage, "status", "trigger")
		out := schedulePage{Head: h, Status: query.Get("status"), Trigger: query.Get("trigger")}
		var next client.NextInstants
		if err := s.ask(r.Context(), v, apiSchedule(r, "/next"), url.Values{"count": {strconv.Itoa(nextLooked)}}, &next); err != nil {
			return nil, err
		}
		out.Next = shorten(next.Items, nextShown, changesShown)
		var list client.Page[client.Slot]
		err := s.ask(r.Context(), v, apiSchedule(r, "/slots"), query, &list)
		out.Slots, out.Pager = list.Items, pagerOf(r, list.NextCursor)
		return out, err
	})
}

type scheduleRunsPage struct {
	Head  *scheduleHead
	Runs  []runView
	Pager pager
}

func (s *Site) showScheduleRuns(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showScheduleTab(w, r, v, "runs", " · runs", func(h *scheduleHead) (any, error) {
		list, err := s.runsOf(r, v, pawl.KindSchedule, h.ID)
		return scheduleRunsPage{h, list.Items, pagerOf(r, list.NextCursor)}, err
	})
}

type scheduleWhyPage struct{ Head *scheduleHead }

func (s *Site) showScheduleWhy(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showScheduleTab(w, r, v, "why", " · why", func(h *scheduleHead) (any, error) { return scheduleWhyPage{h}, nil })
}

func (s *Site) runSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiSchedule(r, "/run"), nil, "Run requested.")
}

// Work is what the schedule runs instead of a graph, in a line.
func (h scheduleHead) Work() string {
	switch r := h.Run; {
	case r == nil:
		return ""
	case len(r.Command) > 0:
		return strings.Join(r.Command, " ")
	case r.URL != "":
		return cmp.Or(strings.ToUpper(r.Method), http.MethodPost) + " " + r.URL
	default:
		return r.Job.Task
	}
}

// RunJSON is what the schedule runs instead of a graph.
func (h scheduleHead) RunJSON() json.RawMessage {
	raw, _ := json.Marshal(h.Run) // it came as JSON
	return raw
}

// slotActions are what can be decided about a slot.
func slotActions(slot client.Slot) []string {
	switch {
	case slot.Count > 1: // a backfill runs some of them
		return nil
	case slot.Unknown:
		return []string{"retry", "skip"}
	case slot.Status == "error", slot.Status == "skipped":
		return []string{"retry"}
	case slot.Status == "pending":
		return []string{"skip"}
	}
	return nil
}

// slotAction is the label of such a decision.
func slotAction(verb string) string {
	if verb == "retry" {
		return "Run again"
	}
	return "Skip"
}

func (s *Site) retrySlot(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiSchedule(r, "/slots/"+segment(r, "instant")+"/retry"), nil, "The slot runs again.")
}

func (s *Site) skipSlot(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, apiSchedule(r, "/slots/"+segment(r, "instant")+"/skip"), nil, "Skipped.")
}

func (s *Site) enableSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	s.changeBy(w, r, v, http.MethodPatch, apiSchedule(r, ""), map[string]any{"enabled": true}, "Enabled.")
}

func (s *Site) pauseSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	s.pause(w, r, v, apiSchedule(r, "/pause"), "Disabled. No slots will start automatically.")
}

func (s *Site) disableSchedule(w http.ResponseWriter, r *http.Request, v *visit) {
	s.changeBy(w, r, v, http.MethodPatch, apiSchedule(r, ""), map[string]any{"enabled": false}, "Disabled. No slots will start automatically.")
}
