package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

const logging = `"job":{"task":"echo"}`

func TestHooksAreApplied(t *testing.T) {
	both(t, func(r *rig) {
		path := "/api/v1/hooks/h"
		var done client.AppliedHook
		r.do("PUT", path+"?dryRun=true", hookOf(logging)).want(200).into(&done)
		if done.What != "created" || !done.DryRun {
			t.Errorf("%+v", done)
		}
		r.do("GET", path, nil).problem(404, "not_found")
		if status := r.deliver("h", hookSecret, `{"id":"d1"}`); status != http.StatusNotFound {
			t.Errorf("after a dry run a delivery is answered with %d", status)
		}
		created := r.do("PUT", path, hookOf(logging)).want(http.StatusCreated)
		r.do("PUT", path, hookOf(logging)).want(200).into(&done)
		if done.What != "unchanged" {
			t.Errorf("%+v", done)
		}
		r.do("PUT", path, hookOf(`"job":{"task":"plain"}`), "If-Match", `"another"`).problem(412, "precondition_failed")
		r.do("PUT", path, hookOf(`"job":{"task":"plain"}`), "If-Match", created.header.Get("ETag")).want(200).into(&done)
		if done.What != "updated" || !strings.Contains(string(done.Previous), "echo") {
			t.Errorf("%+v", done)
		}
		yaml := "kind: hook\nname: h\nverify: {scheme: token, secret: \"${PAWL_TEST_HOOK_SECRET}\"}\nwhen: {body:a: 1}\njob: {task: plain}\n"
		r.do("PUT", path, yaml, "Content-Type", "application/yaml").want(200)
		var h client.Hook
		r.do("GET", path, nil).want(200).into(&h)
		if h.Path != "/hooks/h" || h.Scheme != "token" || h.Effect != "enqueues a job of the task plain" || h.Issue != "" || h.LastDelivery != nil || h.UpdatedBy != "admin" {
			t.Errorf("%+v", h)
		}
		var page client.Page[client.Hook]
		r.do("GET", "/api/v1/hooks", nil).want(200).into(&page)
		if len(page.Items) != 1 || page.Items[0].Version != h.Version {
			t.Errorf("%+v", page)
		}
		for _, raw := range []string{string(h.Definition), string(created.body)} {
			if strings.Contains(raw, hookSecret) {
				t.Errorf("the secret is told: %s", raw)
			}
		}
		r.do("DELETE", path, nil).want(http.StatusNoContent)
		r.do("DELETE", path, nil).problem(404, "not_found")
		r.do("GET", path+"/deliveries", nil).problem(404, "not_found")
	})
}

func TestBadHooksAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		for body, pointer := range map[string]string{
			`{"verify":{"scheme":"github","secret":"a-literal-secret"},"job":{"task":"echo"}}`:       "/verify/secret",
			`{"verify":{"scheme":"github","secret":"file:/etc/hostname"},"job":{"task":"echo"}}`:     "/verify/secret",
			`{"verify":{"scheme":"github","secret":"${PAWL_TEST_NOT_SET}"},"job":{"task":"echo"}}`:   "/verify/secret",
			`{"verify":{"scheme":"github","secret":"x${PAWL_TEST_HOOK_SECRET}"},"job":{"task":"x"}}`: "/verify/secret",
			hookOf(`"job":{"task":"echo"},"name":"other"`):                                           "/name",
			hookOf(`"when":{"x":"y"},` + logging):                                                    "/when/x",
		} {
			p := r.do("PUT", "/api/v1/hooks/h", body).problem(422, "invalid")
			if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer || strings.Contains(p.Errors[0].Message, "a-literal-secret") {
				t.Errorf("%s: %+v", body, p)
			}
		}
		r.do("PUT", "/api/v1/hooks/h", "{", "Content-Type", "application/json").problem(400, "malformed")
		r.do("PUT", "/api/v1/hooks/h", "x", "Content-Type", "text/plain").problem(415, "unsupported_media")
		if n := r.count(`select count(*) from hooks`); n != 0 {
			t.Errorf("%d of them are there", n)
		}
	})
}

// Whoever makes a hook, or delivers again, needs the right for what a delivery
// becomes. Bodies are for those who may write.
func TestHooksNeedTheRightForWhatTheyDo(t *testing.T) {
	both(t, func(r *rig) {
		narrow, reader := r.token("ada", userstore.RoleOperator, "hooks:write"), r.token("eve", userstore.RoleViewer, "hooks:read")
		for effect, scope := range map[string]string{
			`"publish":{"workflow":"pay","topic":"t"}`: "workflows:write", logging: "jobs:write", `"run":{"schedule":"nightly"}`: "schedules:write",
		} {
			p := r.as(narrow, "PUT", "/api/v1/hooks/narrow", hookOf(effect)).problem(403, "forbidden")
			if !strings.Contains(p.Detail, scope) {
				t.Errorf("%s: %+v", effect, p)
			}
			r.as(r.token("bob", userstore.RoleOperator, "hooks:write", scope), "PUT", "/api/v1/hooks/narrow", hookOf(effect))
			r.do("DELETE", "/api/v1/hooks/narrow", nil).want(http.StatusNoContent)
		}
		d := r.putHook("h", logging)
		path := "/api/v1/hooks/h/deliveries"
		r.as(narrow, "POST", path+"/"+d.ID+"/redeliver", nil).problem(403, "forbidden")
		list := r.as(reader, "GET", path, nil).want(200)
		if strings.Contains(string(list.body), "private") || strings.Contains(string(list.body), hookSecret) {
			t.Errorf("a reader sees %s", list.body)
		}
		r.as(reader, "GET", path+"/"+d.ID, nil).problem(403, "forbidden")
		var one client.Delivery
		r.as(narrow, "GET", path+"/d1", nil).want(200).into(&one)
		if one.ID != d.ID || !strings.Contains(string(one.Body), "private") {
			t.Errorf("%+v", one)
		}
		r.do("GET", path+"/d2", nil).problem(404, "not_found")
		r.do("GET", "/api/v1/hooks/other/deliveries/"+d.ID, nil).problem(404, "not_found")
	})
}

func TestDeliveriesAreListed(t *testing.T) {
	both(t, func(r *rig) {
		r.putHook("h", `"when":{"body:text":"private"},`+logging)
		r.deliver("h", hookSecret, `{"id":"d2","text":"other"}`)
		r.deliver("h", "guess", `{"id":"d3"}`)
		for outcome, want := range map[string]int{"": 3, "delivered": 1, "filtered": 1, "refused": 1, "pending": 0} {
			var page client.Page[client.Delivery]
			query := ""
			if outcome != "" {
				query = "?outcome=" + outcome
			}
			r.do("GET", "/api/v1/hooks/h/deliveries"+query, nil).want(200).into(&page)
			if len(page.Items) != want {
				t.Errorf("%s: %+v", outcome, page.Items)
			}
		}
		r.do("GET", "/api/v1/hooks/h/deliveries?outcome=lost", nil).problem(422, "invalid")
		var first, second client.Page[client.Delivery]
		r.do("GET", "/api/v1/hooks/h/deliveries?limit=2", nil).want(200).into(&first)
		r.do("GET", "/api/v1/hooks/h/deliveries?limit=2&cursor="+string(first.NextCursor), nil).want(200).into(&second)
		if len(first.Items) != 2 || len(second.Items) != 1 || second.Items[0].DeliveryID != "d1" || second.NextCursor != "" {
			t.Errorf("%+v and %+v", first, second)
		}
		r.do("DELETE", "/api/v1/hooks/h", nil).want(http.StatusNoContent)
		r.do("GET", "/api/v1/hooks/h/deliveries", nil).want(200).into(&first)
		if len(first.Items) != 3 {
			t.Errorf("after it was deleted: %+v", first.Items)
		}
	})
}

// Deliveries become what the API would make, in the name of whoever applied the
// hook.
func TestWhatDeliveriesBecome(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("takes", consuming("takes", ""))
		if d := r.putHook("event", `"publish":{"workflow":"takes","topic":"t"}`); d.Outcome != "delivered" {
			t.Errorf("an event: %+v", d)
		}
		if n := r.count(`select count(*) from events where message_id = 'hook/event/d1' and created_by = 'hook event'`); n != 1 {
			t.Errorf("there are %d events", n)
		}
		r.schedule(yearly("nightly", "http:poet"))
		if d := r.putHook("run", `"run":{"schedule":"nightly"}`); d.Outcome != "delivered" {
			t.Errorf("a run: %+v", d)
		}
		if n := r.count(`select count(*) from schedule_runs where trigger = 'manual'`); n != 1 {
			t.Errorf("there are %d slots", n)
		}
		if d := r.putHook("job", logging); d.Outcome != "delivered" {
			t.Errorf("a job: %+v", d)
		}
		if ran := r.waitRun(); !strings.Contains(ran, "private") {
			t.Errorf("it ran %s", ran)
		}
		for name, effect := range map[string]string{
			"no-workflow": `"publish":{"workflow":"nobody","topic":"t"}`, "no-topic": `"publish":{"workflow":"takes","topic":"u"}`,
			"no-schedule": `"run":{"schedule":"nobody"}`, "no-task": `"job":{"task":"nothing"}`,
		} {
			if d := r.putHook(name, effect); d.Outcome != "pending" || d.Reason == "" {
				t.Errorf("%s: %+v", name, d)
			}
		}
		r.do("POST", "/api/v1/hooks/no-workflow/deliveries/d1/redeliver", nil).problem(404, "not_found")
	})
}
