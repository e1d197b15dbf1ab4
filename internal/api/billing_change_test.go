package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/pgtest/search"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

const accountsPath = "/api/v1/billing/accounts/"

// setAccount changes an account as the admin.
func (r *rig) setAccount(id, body string, headers ...string) (a client.Account) {
	r.t.Helper()
	r.do("PATCH", accountsPath+id, body, headers...).want(http.StatusOK).into(&a)
	return a
}

// told is an account in few words.
func told(a client.Account) string {
	key, balance := "-", "-"
	if a.KeyRef != "" {
		key = string(a.KeyRef)
	}
	if a.BalanceUSD != nil {
		balance = a.BalanceUSD.String()
	}
	return key + " " + balance
}

// C-03: an account is given a key and a balance; what is absent stays, null
// clears; every change is in the audit log, once.
func TestUpdateAccount(t *testing.T) {
	both(t, func(r *rig) {
		audits := func() int { return r.count(`select count(*) from audit_log where action = 'account.update'`) }
		for i, step := range []struct {
			body, want string
			audits     int
		}{
			{`{}`, "- -", 0},
			{`{"keyRef":"${TEAM_KEY}","balanceUsd":10.25}`, "${TEAM_KEY} 10.25", 1},
			{`{"balanceUsd":0.0000001}`, "${TEAM_KEY} 0.0000001", 2},
			{`{"balanceUsd":0.0000001}`, "${TEAM_KEY} 0.0000001", 2},
			{`{"balanceUsd":null}`, "${TEAM_KEY} -", 3},
			{`{"keyRef":"${_b2}","balanceUsd":0}`, "${_b2} 0", 4},
			{`{"keyRef":null}`, "- 0", 5},
		} {
			if got := told(r.setAccount("default", step.body)); got != step.want || audits() != step.audits {
				t.Errorf("step %d: %s after %d audits, want %+v", i, got, audits(), step)
			}
		}
		if got := r.setAccount("default", `{}`); got.Timezone != "UTC" {
			t.Errorf("the zone is %q", got.Timezone)
		}
		for range 2 {
			if got := r.setAccount("default", `{"timezone":"Europe/Berlin"}`); got.Timezone != "Europe/Berlin" || audits() != 6 {
				t.Errorf("the zone is %q after %d audits", got.Timezone, audits())
			}
		}
		var page client.Page[client.Account]
		r.do("GET", "/api/v1/billing/accounts?limit=1", nil).want(200).into(&page)
		if len(page.Items) != 1 || told(page.Items[0]) != "- 0" || page.NextCursor != "" {
			t.Errorf("%+v", page)
		}
		id := page.Items[0].ID
		r.setAccount(id, `{"balanceUsd":3}`, "Idempotency-Key", "k")
		r.setAccount(id, `{"balanceUsd":4}`)
		p := r.do("PATCH", accountsPath+id, `{"balanceUsd": 3.0}`, "Idempotency-Key", "k").want(200)
		if p.header.Get("Idempotency-Replayed") != "true" || told(r.setAccount(id, `{}`)) != "- 4" {
			t.Errorf("the repeated request changed something: %s", p.body)
		}
		r.do("PATCH", accountsPath+id, `{"balanceUsd":null}`, "Idempotency-Key", "k").problem(422, "idempotency_mismatch")
		r.do("PATCH", accountsPath+id, `{}`, "Idempotency-Key", "k").problem(422, "idempotency_mismatch")
	})
}

// A literal key may be a real one: it is refused, and said and stored nowhere.
func TestLiteralKeyIsRefusedWithoutAnEcho(t *testing.T) {
	const literal = "sk-live-31415926"
	both(t, func(r *rig) {
		for body, pointer := range map[string]string{
			`{"keyRef":"` + literal + `"}`:          "/keyRef",
			`{"keyRef":"${A}` + literal + `"}`:      "/keyRef",
			`{"keyRef":"Bearer ${TEAM_KEY}"}`:       "/keyRef",
			`{"keyRef":"file:` + literal + `"}`:     "/keyRef",
			`{"keyRef":""}`:                         "/keyRef",
			`{"timezone":"Mars/Base"}`:              "/timezone",
			`{"timezone":""}`:                       "/timezone",
			`{"timezone":"../../etc/passwd"}`:       "/timezone",
			`{"keyRef":["` + literal + `"]}`:        "/keyRef",
			`{"key":"` + literal + `"}`:             "/key",
			`{"balanceUsd":"` + literal + `"}`:      "/balanceUsd",
			`{"balanceUsd":-1}`:                     "/balanceUsd",
			`{"balanceUsd":1e300}`:                  "/balanceUsd",
			`{"keyRef":"${` + longName(300) + `}"}`: "/keyRef",
		} {
			p := r.do("PATCH", accountsPath+"default", body, "Idempotency-Key", uuid.NewString())
			if got := pointers(p.problem(422, "invalid")); fmt.Sprint(got) != "["+pointer+"]" {
				t.Errorf("%s: %v", body, got)
			}
			if strings.Contains(string(p.body), literal) {
				t.Errorf("%s is said again: %s", body, p.body)
			}
		}
		if places := search.Places(t, r.db, literal); len(places) > 0 || strings.Contains(r.log.String(), literal) {
			t.Errorf("stored in %v, logged %s", places, r.log)
		}
	})
}

func longName(n int) string { return strings.Repeat("A", n) }

// Key references name secrets of the server, so that nobody but admins sets
// them, on accounts of their own neither; what is somebody else's looks absent.
func TestOnlyAdminsChangeAccounts(t *testing.T) {
	both(t, func(r *rig) {
		mine := r.setAccount("default", `{}`).ID
		bob := r.token("bob", userstore.RoleOperator, "*")
		var his client.Grant
		r.as(bob, "POST", "/api/v1/grants", `{"graphs":["http:poet"]}`).want(201).into(&his)
		for _, id := range []string{"default", his.BillingAccountID, mine} {
			for _, token := range []string{bob, r.token("vera", userstore.RoleViewer, "*"), r.token("cleo", userstore.RoleAdmin, "billing:read", "grants:admin")} {
				r.as(token, "PATCH", accountsPath+id, `{"keyRef":"${HOME}"}`).problem(403, "forbidden")
			}
		}
		dora := r.token("dora", userstore.RoleAdmin, "billing:write") // an admin whose token is for her own things
		r.as(dora, "PATCH", accountsPath+"default", `{"keyRef":"${TEAM_KEY}"}`).want(200)
		r.as(dora, "PATCH", accountsPath+mine, `{"keyRef":"${TEAM_KEY}"}`).problem(404, "not_found")
		for _, id := range []string{uuid.NewString(), "nothing", "Default"} {
			r.do("PATCH", accountsPath+id, `{"balanceUsd":1}`).problem(404, "not_found")
		}
		if got := r.setAccount(his.BillingAccountID, `{"balanceUsd":1}`); told(got) != "- 1" {
			t.Errorf("%+v", got)
		}
		if n := r.count(`select count(*) from billing_accounts where key_ref is not null`); n != 1 {
			t.Errorf("%d accounts have a key", n)
		}
		if list := pages[client.Account](r, "/api/v1/billing/accounts?all=true&limit=1"); len(list) != 3 {
			t.Errorf("%+v", list)
		}
	})
}

// C-03, C-30, C-35, lesson 53: the key of the account reaches the graph in the
// header of its executor, as it is at that moment; one that is not there fails
// the attempt, calls nobody, and heals. It is in no table, no log line, no
// answer.
func TestKeyOfTheAccountReachesTheGraph(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "keyed:poet"))
		r.setAccount("default", `{"keyRef":"${TEAM_KEY}"}`)
		slot := r.runSchedule(s.ID)
		r.eventually("the first attempt fails", func() bool {
			return r.count(`select count(*) from execution_requests where error_message like 'the key ${TEAM_KEY} of billing account % is not set on this server%'`) == 1
		})
		if got := r.studio.shown(); len(got) != 0 {
			t.Errorf("called with %q", got)
		}
		keys := []string{"vk-31415926-first", "vk-31415926-second", "vk-31415926-third"}
		r.studio.setenv("TEAM_KEY", keys[0])
		if healed := r.waitSlot(s.ID, slot.ScheduledFor, "success"); healed.AttemptCount < 2 {
			t.Errorf("%+v", healed)
		}
		r.studio.setenv("TEAM_KEY", keys[1])
		r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		r.studio.setenv("OTHER_KEY", keys[2])
		r.setAccount("default", `{"keyRef":"${OTHER_KEY}"}`)
		run := r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		if got := r.studio.shown(); fmt.Sprint(got) != fmt.Sprint(keys) {
			t.Errorf("called with %q", got)
		}

		answers := ""
		for _, path := range []string{
			"/api/v1/billing/accounts", "/api/v1/billing/receipts", "/api/v1/grants", "/api/v1/grants/" + s.ExecutionGrantID, "/api/v1/schedules/" + s.ID + "/slots",
			"/api/v1/runs/" + string(run.RunID), "/api/v1/lanes/schedule/" + s.ID + "/why",
		} {
			answers += string(r.do("GET", path, nil).want(200).body)
		}
		if strings.Contains(answers, "vk-31415926") || !strings.Contains(answers, "${OTHER_KEY}") {
			t.Errorf("answered %s", answers)
		}
		if places := search.Places(t, r.db, "vk-31415926"); len(places) > 0 || strings.Contains(r.log.String(), "vk-31415926") {
			t.Errorf("stored in %v, logged %s", places, r.log)
		}
		if places := fmt.Sprint(search.Places(t, r.db, "${OTHER_KEY}")); !strings.Contains(places, "billing_accounts.key_ref") || strings.Contains(places, "execution_grants") {
			t.Errorf("the reference is in %s", places)
		}
	})
}

// C-03: a run that may cost more than what is left does not start; one that fits
// does, and lowers the balance.
func TestPrepaidAccountRefusesWhatItCannotPay(t *testing.T) {
	both(t, func(r *rig) {
		grant := r.grantOf("admin", `{"graphs":["http:poet"],"caps":{"usdPerRun":2}}`)
		s := r.schedule(yearly("poet", "http:poet", "executionGrantId", grant))
		r.setAccount("default", `{"balanceUsd":1.5}`)
		slot := r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "skipped")
		if string(slot.Disposition) != "skipped_budget" || slot.Error.Code != string(contract.InsufficientCredits) || len(r.studio.calls()) != 0 {
			t.Errorf("%+v", slot)
		}
		r.setAccount("default", `{"balanceUsd":2}`)
		r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"enabled":true}`).want(200)
		r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		if got := told(r.setAccount("default", `{}`)); got != "- 1.7" {
			t.Errorf("left: %s", got)
		}
	})
}
