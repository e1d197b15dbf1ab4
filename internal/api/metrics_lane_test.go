package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Operators see how lanes stand, what waits for people and what is spent.
func TestMetricsTellHowLanesStand(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		r.schedule(yearly("critic", "http:poet"))
		late := r.schedule(yearly("late", "http:poet"))
		r.exec(`update lanes set state = 'Needs attention' where kind = 'schedule' and lane = $1`, late.ID) // as expect leaves it
		r.exec(`update lanes set state = 'Needs attention', issue = 'auth' where kind = 'schedule' and lane = $1`, s.ID)
		r.exec(`insert into billing_accounts (id, owner_id, name, created_at) select 'acct-1', id, 'team', 0 from users limit 1`)
		r.exec(`insert into charge_days (subject, day, amount, receipts) values ('acct-1', 1, 10000000, 1), ('acct-1', $1, 25000000, 2)`, r.today())
		got := string(r.do("GET", "/metrics", nil).want(http.StatusOK).body)
		for _, line := range []string{
			`pawl_lanes{kind="schedule",state="Idle"} 1`,
			`pawl_lanes{kind="schedule",state="Needs attention"} 2`,
			`pawl_lanes{kind="schedule",state="Running"} 0`,
			`pawl_lane_needs_attention{issue="auth",kind="schedule",lane="poet"} 1`,
			`pawl_lane_needs_attention{issue="expectation",kind="schedule",lane="late"} 1`,
			`pawl_approvals_waiting 0`,
			`pawl_spend_today_usd{account="acct-1"} 2.5`,
		} {
			if !strings.Contains(got, "\n"+line+"\n") {
				t.Errorf("there is no line %s", line)
			}
		}
		if t.Failed() {
			t.Log(got)
		}
		r.as(r.token("alice", userstore.RoleOperator, "schedules:read"), "GET", "/metrics", nil).want(http.StatusForbidden)
	})
}

// A scrape of whom nobody waits for any more asks nothing.
func TestMetricsStopWhenNobodyReadsThem(t *testing.T) {
	both(t, func(r *rig) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		out := make(chan int, 1)
		go func() { out <- len(collected(&laneCollector{api: r.api, ctx: ctx})) }()
		if n := <-out; n != 0 {
			t.Errorf("%d numbers for nobody", n)
		}
		if n := len(collected(&laneCollector{api: r.api, ctx: t.Context()})); n < 13 {
			t.Errorf("only %d numbers", n)
		}
	})
}

func collected(c prometheus.Collector) (all []prometheus.Metric) {
	out := make(chan prometheus.Metric)
	go func() {
		c.Collect(out)
		close(out)
	}()
	for m := range out {
		all = append(all, m)
	}
	return all
}

// today is the day of UTC, as accounts count it.
func (r *rig) today() int64 { return time.Now().Unix() / 86400 }
