package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

type grantsPage struct {
	Grants   []grantView
	Pager    pager
	Accounts []client.Account
	Days     []daySpend // the oldest first, all of them
	Total    pawl.USD
	Receipts []client.Receipt
	CanWrite bool
	All      bool // those of everybody
	MayAll   bool
}

// daySpend is what was spent on a day.
type daySpend struct {
	Day    time.Time
	Amount pawl.USD
}

const (
	grantsPerPage = 25
	receiptsShown = 20
	spendDays     = 30

	accountsAtOnce = 500 // the most that the API tells
	schedulesNamed = 5   // of those that run under a grant
)

// showGrants is who allowed what to run, and what it cost.
func (s *Site) showGrants(w http.ResponseWriter, r *http.Request, v *visit) {
	out := grantsPage{CanWrite: v.may("grants", "write"), MayAll: v.may("grants", "admin") && v.may("billing", "admin")}
	out.All = out.MayAll && r.URL.Query().Get("all") != ""
	query := listQuery(r, grantsPerPage)
	if out.All {
		query.Set("all", "true")
	}
	var grants client.Page[grantView]
	if err := s.ask(r.Context(), v, "/api/v1/grants", query, &grants); err != nil {
		s.problem(w, r, err)
		return
	}
	out.Grants, out.Pager = grants.Items, pagerOf(r, grants.NextCursor)
	if err := s.nameSchedules(r.Context(), v, out.Grants); err != nil {
		s.problem(w, r, err)
		return
	}
	if v.may("billing", "read") {
		if err := s.addSpend(r, v, &out); err != nil {
			s.problem(w, r, err)
			return
		}
	}
	f := s.frameFor(r, v, "grants", "Grants and spend")
	f.Live = everyLane
	s.show(w, r, "grants.html", f, out)
}

// nameSchedules adds to grants the schedules that run under them, so that one
// knows what revoking would stop.
func (s *Site) nameSchedules(ctx context.Context, v *visit, grants []grantView) error {
	if !v.may("schedules", "read") {
		return nil
	}
	return s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i := range grants {
			list, err := schedulestore.In(tx).SchedulesUnder(ctx, grants[i].ID, schedulesNamed)
			if err != nil {
				return err
			}
			grants[i].Schedules = list
		}
		return nil
	})
}

func (s *Site) addSpend(r *http.Request, v *visit, out *grantsPage) error {
	accounts, receipts := url.Values{"days": {strconv.Itoa(spendDays)}, "limit": {strconv.Itoa(accountsAtOnce)}}, url.Values{"limit": {strconv.Itoa(receiptsShown)}}
	if out.All {
		accounts.Set("all", "true")
		receipts.Set("all", "true")
	}
	for more := true; more; { // the sum needs all of them
		var list client.Page[client.Account]
		if err := s.ask(r.Context(), v, "/api/v1/billing/accounts", accounts, &list); err != nil {
			return err
		}
		out.Accounts = append(out.Accounts, list.Items...)
		accounts.Set("cursor", string(list.NextCursor))
		more = list.NextCursor != ""
	}
	out.Days, out.Total = spendByDay(out.Accounts, v.now)
	var paid client.Page[client.Receipt]
	err := s.ask(r.Context(), v, "/api/v1/billing/receipts", receipts, &paid)
	out.Receipts = paid.Items
	return err
}

// spendByDay adds up what all accounts spent, with the days on which that was
// nothing.
func spendByDay(accounts []client.Account, now time.Time) (days []daySpend, total pawl.USD) {
	sums := map[string]pawl.USD{}
	for _, account := range accounts {
		for _, day := range account.Days {
			sums[day.Day] += day.AmountUSD
			total += day.AmountUSD
		}
	}
	today := now.UTC().Truncate(24 * time.Hour)
	for back := spendDays - 1; back >= 0; back-- {
		day := today.AddDate(0, 0, -back)
		days = append(days, daySpend{day, sums[day.Format(time.DateOnly)]})
	}
	return days, total
}

// createGrant allows exactly the graphs that are named.
func (s *Site) createGrant(w http.ResponseWriter, r *http.Request, v *visit) {
	graphs := strings.FieldsFunc(r.FormValue("graphs"), func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\r' })
	caps := map[string]any{}
	for _, name := range []string{"usdPerDay", "usdPerRun"} {
		text := strings.TrimSpace(r.FormValue(name))
		if text == "" {
			continue
		}
		amount, err := pawl.ParseUSD(text)
		if err != nil {
			s.refused(w, r, err)
			return
		}
		caps[name] = amount
	}
	if text := strings.TrimSpace(r.FormValue("runsPerDay")); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			s.refused(w, r, &pawl.Error{Code: pawl.CodeInvalid, Msg: "runs per day is not a number"})
			return
		}
		caps["runsPerDay"] = n
	}
	body := map[string]any{"graphs": graphs, "caps": caps}
	if text := strings.TrimSpace(r.FormValue("days")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 36500 {
			s.refused(w, r, &pawl.Error{Code: pawl.CodeInvalid, Msg: "the expiry is not a number of days"})
			return
		}
		body["expiresAt"] = pawl.FormatTime(v.now.AddDate(0, 0, n))
	}
	s.change(w, r, v, "/api/v1/grants", body, "Grant created.")
}

func (s *Site) revokeGrant(w http.ResponseWriter, r *http.Request, v *visit) {
	s.change(w, r, v, "/api/v1/grants/"+segment(r, "id")+"/revoke", nil, "Revoked. Nothing can run under this grant any more.")
}
