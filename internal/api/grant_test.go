package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// grantOf makes a grant of a user and returns its id.
func (r *rig) grantOf(user, body string) string {
	r.t.Helper()
	var g client.Grant
	r.as(r.token(user, userstore.RoleAdmin, "*"), "POST", "/api/v1/grants", body).want(http.StatusCreated).into(&g)
	return g.ID
}

// C-67, X-61, X-58: grants name graphs, the wildcard needs consent, and caps
// are exact amounts.
func TestCreateGrant(t *testing.T) {
	both(t, func(r *rig) {
		var g client.Grant
		p := r.do("POST", "/api/v1/grants", `{"graphs":["http:poet","x:asks"],"caps":{"usdPerDay":1.25,"usdPerRun":0.0000001,"runsPerDay":3},"expiresAt":"2040-01-31T10:00:00+01:00"}`, "Idempotency-Key", "k").want(201)
		p.into(&g)
		if fmt.Sprint(g.Scopes) != "[graph:execute:http:poet graph:execute:x:asks]" || g.Caps.USDPerDay.String() != "1.25" || *g.Caps.USDPerRun != 1 || *g.Caps.RunsPerDay != 3 || g.Automatic || !g.WildcardConsentAt.IsZero() || g.UserID != r.user.ID ||
			!strings.Contains(string(p.body), `"expiresAt":"2040-01-31T09:00:00.000Z"`) || !strings.Contains(string(p.body), `"revokedAt":null`) || p.header.Get("Location") != "/api/v1/grants/"+g.ID {
			t.Errorf("%s", p.body)
		}
		r.do("POST", "/api/v1/grants", `{"scopes":["graph:execute:*"],"wildcardConsent":true}`).want(201).into(&g)
		if g.WildcardConsentAt.IsZero() || g.Caps.USDPerDay != nil {
			t.Errorf("%+v", g)
		}
		r.do("POST", "/api/v1/grants", `{"graphs":["*"],"wildcardConsent":true}`).want(201)
		for body, pointer := range map[string]string{
			`{}`: "/graphs", `{"graphs":["poet"]}`: "/graphs/0", `{"graphs":["*"]}`: "/scopes", `{"scopes":["graph:execute:http:*"]}`: "/scopes/0",
			`{"graphs":["x:asks"],"caps":{"usdPerDay":-1}}`: "/caps/usdPerDay", `{"graphs":["x:asks"],"caps":{"usdPerMonth":1}}`: "/caps/usdPerMonth", `{"graphs":["x:asks"],"caps":{"usdPerDay":"lots"}}`: "/caps/usdPerDay",
			`{"graphs":["x:asks"],"expiresAt":"2001-01-01T00:00:00Z"}`: "/expiresAt", `{"graphs":["x:asks"],"expiresAt":"soon"}`: "/expiresAt", `{"graphs":["x:asks"],"billingAccountId":"nobody"}`: "/billingAccountId",
		} {
			if got := pointers(r.do("POST", "/api/v1/grants", body).problem(422, "invalid")); fmt.Sprint(got) != "["+pointer+"]" {
				t.Errorf("%s: %v", body, got)
			}
		}
		if n := r.count(`select count(*) from execution_grants`); n != 3 {
			t.Errorf("%d grants", n)
		}
	})
}

// Context 3.18: grants are their owner's; a revoked one stays readable and stops
// its schedules.
func TestGrantsBelongToTheirOwnerAndCanBeRevoked(t *testing.T) {
	both(t, func(r *rig) {
		bob := r.token("bob", userstore.RoleOperator, "*")
		mine, his := r.grantOf("admin", `{"graphs":["http:poet"]}`), r.grantOf("bob", `{"graphs":["http:poet"]}`)
		r.as(bob, "GET", "/api/v1/grants/"+mine, nil).problem(404, "not_found")
		r.as(bob, "POST", "/api/v1/grants/"+mine+"/revoke", nil).problem(404, "not_found")
		r.do("GET", "/api/v1/grants/"+his, nil).want(200)
		r.do("GET", "/api/v1/grants/nothing", nil).problem(404, "not_found")
		for path, want := range map[string]int{"/api/v1/grants?limit=1": 1, "/api/v1/grants?all=true&limit=1": 2} {
			if got := pages[client.Grant](r, path); len(got) != want {
				t.Errorf("%s: %+v", path, got)
			}
		}
		s := r.schedule(yearly("poet", "http:poet", "executionGrantId", mine))
		var g, again client.Grant
		r.do("POST", "/api/v1/grants/"+mine+"/revoke", nil).want(200).into(&g)
		r.do("POST", "/api/v1/grants/"+mine+"/revoke", nil).want(200).into(&again)
		if g.RevokedAt.IsZero() || !again.RevokedAt.Equal(g.RevokedAt.Time) || r.count(`select count(*) from audit_log where action = 'grant.revoke'`) != 1 {
			t.Errorf("%+v %+v", g, again)
		}
		slot := r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "skipped")
		if string(slot.Disposition) != "skipped_grant" || slot.Error.Code != string(contract.GrantRevoked) || len(r.studio.calls()) != 0 {
			t.Errorf("%+v", slot)
		}
	})
}

// Context 3.19: what a run cost is on the account by day, and on one receipt
// for each unit; both are the owner's.
func TestBillingTellsWhatRunsCost(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		slot := r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		accounts := func() (page client.Page[client.Account]) {
			r.do("GET", "/api/v1/billing/accounts", nil).want(200).into(&page)
			return page
		}
		list := accounts().Items
		if len(list) != 1 || list[0].BalanceUSD != nil || len(list[0].Days) != 1 || list[0].Days[0].AmountUSD.String() != "0.3" || list[0].Days[0].Receipts != 2 || list[0].OwnerUserID != r.user.ID {
			t.Errorf("%+v", list)
		}
		r.write(func(ctx context.Context, tx *store.Tx) error {
			balance := int64(50_000_000)
			return grantstore.In(tx).SetBalance(ctx, list[0].ID, &balance)
		})
		r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		if got := accounts().Items[0]; got.BalanceUSD.String() != "4.7" {
			t.Errorf("%+v", got)
		}
		for query, want := range map[string]int{
			"?limit=1": 4, "?limit=1&run=" + string(slot.RunID): 2, "?limit=1&schedule=" + s.ID: 4, "?limit=3&grant=" + s.ExecutionGrantID: 4, "?limit=3&account=" + list[0].ID: 4,
			"?limit=1&run=x": 0, "?limit=1&schedule=x": 0, "?limit=1&grant=x": 0,
		} {
			receipts := pages[client.Receipt](r, "/api/v1/billing/receipts"+query)
			if len(receipts) != want {
				t.Errorf("%s: %d", query, len(receipts))
			}
			for _, c := range receipts {
				if c.SourceSystem != "pawl" || !strings.HasPrefix(c.SourceReference, c.RunID+"/1/") || c.Executor != "http" || string(c.ScheduleID) != s.ID {
					t.Errorf("%+v", c)
				}
			}
		}
		bob := r.token("bob", userstore.RoleOperator, "*")
		var page client.Page[client.Receipt]
		r.as(bob, "GET", "/api/v1/billing/receipts?run="+string(slot.RunID), nil).want(200).into(&page)
		if len(page.Items) != 0 {
			t.Errorf("bob sees %+v", page.Items)
		}
		r.as(bob, "GET", "/api/v1/billing/accounts?all=true", nil).problem(403, "forbidden")
		r.as(bob, "GET", "/api/v1/billing/receipts?all=true", nil).problem(403, "forbidden")
	})
}
