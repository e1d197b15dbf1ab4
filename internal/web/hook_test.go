package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Viewers see what was delivered, without bodies and buttons; what a sender wrote is
// shown as text.
func TestPagesOfHooks(t *testing.T) {
	both(t, func(r *rig) {
		admin, viewer := r.signedIn(r.admin), r.signedIn(r.token("eve", userstore.RoleViewer, "*"))
		admin.get("/webhooks").want(200).has("No hooks.")
		r.ask("PUT", "/api/v1/hooks/h", map[string]any{
			"verify": map[string]any{"scheme": "token", "secret": "${PAWL_TEST_HOOK_SECRET}"}, "deliveryId": "body:id",
			"when": map[string]any{"body:go": true}, "job": map[string]any{"task": "fail"},
		}, nil)
		send := func(secret, body string) {
			req := httptest.NewRequest(http.MethodPost, "/hooks/h", strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+secret)
			r.hooks.ServeHTTP(httptest.NewRecorder(), req)
		}
		send(hookSecret, `{"id":"<b>d1</b>","go":true,"text":"private"}`)
		send(hookSecret, `{"id":"d2","go":false}`)
		send("guess", `{"id":"d3"}`)
		admin.get("/webhooks").want(200).has("enqueues a job of the task fail", `href="/webhooks/h"`)
		page := admin.get("/webhooks/h").want(200)
		page.has("&lt;b&gt;d1&lt;/b&gt;", "body:go is false, not true", "is not the one of the hook", "Deliver again")
		if strings.Contains(page.body, hookSecret) || strings.Count(page.body, "Deliver again") != 2 {
			t.Error("the secret is shown, or what was refused can be delivered")
		}
		seen := viewer.get("/webhooks/h").want(200)
		if strings.Contains(seen.body, "Deliver again") || strings.Contains(seen.body, `href="/webhooks/h/`) {
			t.Error("a viewer is offered what they must not do")
		}
		var list client.Page[client.Delivery]
		r.ask("GET", "/api/v1/hooks/h/deliveries?outcome=delivered", nil, &list)
		path := "/webhooks/h/" + list.Items[0].ID
		viewer.get(path).want(http.StatusForbidden)
		viewer.post(path+"/redeliver", "back", "/webhooks/h").want(http.StatusForbidden)
		admin.get(path).want(200).has("private", "1 time")
		admin.post(path+"/redeliver", "back", path).want(http.StatusSeeOther)
		admin.get(path).want(200).has("Delivered again.", "2 times")
		admin.post("/webhooks/h/d2/redeliver", "back", "/webhooks/h").want(http.StatusConflict).has("The hook is not for this delivery")
		admin.get("/webhooks/nobody").want(http.StatusNotFound)
		admin.get("/audit").want(200).has("hook.redeliver", `href="/webhooks/h"`)
	})
}
